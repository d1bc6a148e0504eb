"""How many alerts fire, for Prometheus."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from monitoring.models import Alert, Rule
from monitoring.models.alerts import AlertStatus


class FiringAlerts(Collector):
    """0 for a rule that is on and does not fire; a rule that is off has no sample."""

    def collect(self) -> Iterable[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "tandem_alerts_firing",
            "Alerts that fire, by rule; a silenced one is hushed.",
            labels=["rule", "severity", "hushed"],
        )
        counts: Counter[tuple[str, str, bool]] = Counter()
        for name, severity in Rule.objects.filter(enabled=True).values_list("name", "severity"):
            counts[name, severity, False] += 0
        firing = Alert.objects.filter(status=AlertStatus.FIRING)
        counts.update(firing.values_list("rule_name", "severity", "hushed"))
        for (name, severity, hushed), count in sorted(counts.items()):
            family.add_metric([name, severity, "yes" if hushed else "no"], count)
        yield family
