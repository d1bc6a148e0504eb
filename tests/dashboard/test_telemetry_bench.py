"""What telemetry costs on a machine can be measured there, and nothing is left behind."""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from dashboard.models import Node
from monitoring.models import Layout, Minute, Reading


@pytest.mark.django_db
def test_the_figures_are_json_and_the_made_up_readings_are_gone() -> None:
    out = StringIO()
    call_command("telemetry_bench", nodes=2, devices=1, seconds=60, day=2, times=1, stdout=out)
    told = json.loads(out.getvalue())
    assert (told["subjects"], told["stored_rows"]) == (4, 240)
    assert all(isinstance(number, int | float) and number > 0 for number in told.values())
    for model in (Node, Layout, Reading, Minute):
        assert not model.objects.exists()
