"""What should not be: rules over what is measured, and who is told when one fires."""
