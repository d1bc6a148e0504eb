"""What deployments and nodes are now, as Prometheus gauges."""

from collections.abc import Iterable

from django.db.models import Count, Sum
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from dashboard.choices import DeploymentStatus, NodeStatus
from dashboard.models import Deployment, Node, Replica

Family = GaugeMetricFamily | CounterMetricFamily


class Standings(Collector):
    def collect(self) -> Iterable[Family]:
        yield from _deployments()
        yield _replicas()
        yield _nodes()


def _deployments() -> Iterable[Family]:
    status = GaugeMetricFamily(
        "tandem_deployment_status",
        "1 for the status that a deployment has, 0 for the others.",
        labels=["deployment", "status"],
    )
    recoveries = CounterMetricFamily(
        "tandem_deployment_recoveries_total",
        "Times its ranks were started anew in place.",
        labels=["deployment"],
    )
    rows = Deployment.objects.annotate(recovered=Sum("replicas__recoveries"))
    for deployment in rows:
        for known in DeploymentStatus:
            status.add_metric([deployment.name, known.value], float(deployment.status == known))
        recoveries.add_metric([deployment.name], deployment.recovered or 0)
    return status, recoveries


def _replicas() -> Family:
    family = GaugeMetricFamily(
        "tandem_deployment_replicas",
        "Launches that have not ended, by what they are for and their status.",
        labels=["deployment", "role", "status"],
    )
    rows = Replica.objects.filter(ended_at=None).order_by("deployment__name", "role", "status")
    for name, role, status, count in rows.values_list(
        "deployment__name", "role", "status"
    ).annotate(count=Count("pk")):
        family.add_metric([name, role, status], count)
    return family


def _nodes() -> Family:
    family = GaugeMetricFamily(
        "tandem_node_online", "Whether the node's agent is connected.", labels=["node"]
    )
    for node in Node.objects.all():
        family.add_metric([node.name], float(node.status == NodeStatus.ONLINE))
    return family
