"""What is read now: checked, stored, and shown to whoever looks."""
