"""How long each part of an update may take, in one place."""

from datetime import timedelta

DRAIN = timedelta(minutes=30)
PRECHECK = timedelta(minutes=3)
UPLOAD = timedelta(minutes=20)
APPLY = timedelta(minutes=90)
RESET = timedelta(days=7)
"""What is staged may wait for a person."""
REBOOT = timedelta(minutes=30)
GRACE = timedelta(minutes=5)
"""For an orderly restart, before it is forced."""
VALIDATE = timedelta(minutes=30)
"""With the canary at its end."""
STALL = timedelta(minutes=15)
"""Without a change of a task's percentage."""
AWAY = timedelta(minutes=15)
"""For which a BMC may be silent while it starts itself anew."""
SETTLE = timedelta(minutes=5)
"""For the inventory to show what a task has done."""
CANARY = timedelta(minutes=8)
"""For a launch to come back to the node and answer."""
POLL = 2.0
"""Seconds between two looks."""
