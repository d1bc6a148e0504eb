"""Watts and joules at the plug, of all outlets together."""

from monitoring.metrics import ENERGY, POWER, Metric
from monitoring.probes.counters import Growing
from monitoring.probes.pdu.profiles import amounts, total, wanted
from monitoring.probes.pdu.snmp import Snmp
from monitoring.samples import Sample, measured, unavailable
from monitoring.sources import PduSource


class PduReader:
    def __init__(self, source: PduSource) -> None:
        self.period = source.seconds
        self._source = source
        self._wanted = wanted(source)
        self._snmp = Snmp(source)
        self._joules = Growing()

    def read(self) -> list[Sample]:
        answers = self._snmp.get(self._wanted.oids)
        joules = amounts(self._wanted.energy, answers)
        return [
            self._sample(POWER, total(self._wanted.power, answers)),
            self._sample(ENERGY, joules if isinstance(joules, str) else self._joules.total(joules)),
        ]

    def close(self) -> None:
        self._snmp.close()

    def _sample(self, metric: Metric, amount: float | str) -> Sample:
        if isinstance(amount, str):
            return unavailable(metric, amount, source=self._source.origin, scope="wall")
        return measured(metric, amount, source=self._source.origin, scope="wall")
