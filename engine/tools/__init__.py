"""Commands that make or change model files. No torch."""
