"""What pages draw of the readings."""
