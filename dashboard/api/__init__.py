"""`/api/v1/`: what the panel's forms do, for programs."""
