"""What monitoring keeps. One noun a file."""

from monitoring.models.readings import Layout, Reading

__all__ = ["Layout", "Reading"]
