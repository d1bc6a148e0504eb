"""Metered outlets, read over SNMP."""
