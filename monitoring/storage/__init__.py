"""What was read, kept: by the second, the minute and the hour, and read back as series."""
