"""The metrics say what every deployment is."""

import pytest

from dashboard.standings import Standings
from monitoring.export.prometheus import render
from tests.dashboard.gateway_cast import make_deployment, make_replica

pytestmark = pytest.mark.django_db


def test_a_deployment_has_one_status_and_counts_its_replicas() -> None:
    replica = make_replica(make_deployment(status="degraded"), 9, status="recovering")
    replica.recoveries = 3
    replica.save()
    lines = render(Standings()).decode().splitlines()
    assert 'tandem_deployment_status{deployment="smol",status="degraded"} 1.0' in lines
    assert 'tandem_deployment_status{deployment="smol",status="ready"} 0.0' in lines
    replicas = 'tandem_deployment_replicas{deployment="smol",role="primary",status="recovering"}'
    assert f"{replicas} 1.0" in lines
    assert 'tandem_deployment_recoveries_total{deployment="smol"} 3.0' in lines
