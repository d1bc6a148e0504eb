"""When a box may be taken out for firmware: at any time, or in some hours of each week. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from dashboard.configuration.declared import Value

WEEK = timedelta(days=7)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
"""As `datetime.weekday` counts them."""


def is_open(settings: Mapping[str, Value], now: datetime) -> bool:
    """`now`: on the panel's clock. What has begun goes on beyond the window's end."""
    day = str(settings["firmware_day"])
    if day == "any":
        return True
    begins = now.replace(
        hour=int(str(settings["firmware_hour"])), minute=0, second=0, microsecond=0
    )
    begins -= timedelta(days=(now.weekday() - DAYS.index(day)) % 7)
    if begins > now:
        begins -= WEEK
    return now - begins < timedelta(hours=int(str(settings["firmware_hours"])))
