"""How long telemetry is kept is set in days, and nonsense stops the start."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from dashboard import env


def test_a_coarser_level_is_kept_for_longer() -> None:
    kept = settings.TELEMETRY_KEEP
    assert kept["second"] <= kept["minute"] <= kept["hour"]


def test_days_become_times() -> None:
    assert env.telemetry_keep(2, 60, 1096)["minute"] == timedelta(days=60)


@pytest.mark.parametrize("days", [(3, 2, 100), (2, 60, 30)])
def test_a_finer_level_cannot_outlive_a_coarser_one(days: tuple[int, int, int]) -> None:
    with pytest.raises(ImproperlyConfigured, match="TANDEM_KEEP_MINUTES_DAYS"):
        env.telemetry_keep(*days)
