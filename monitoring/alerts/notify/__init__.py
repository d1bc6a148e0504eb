"""Messages about incidents: what they say, how each receiver wants it, and how it gets there."""
