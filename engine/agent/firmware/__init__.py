"""The node's firmware: what it has, and carrying out what the panel orders."""
