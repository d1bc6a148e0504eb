"""Probes of the machine and its processes. They import nothing of ours but samples."""
