"""Firmware: images and who signed them, what boxes have, and how a box or its BMC fetches one."""
