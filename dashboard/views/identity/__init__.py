"""Signing in, one's own account, and who administers both."""
