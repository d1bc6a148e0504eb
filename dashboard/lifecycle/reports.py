"""What a node's report says about one launch. Pure: rows in, field values and causes out."""

import signal
from collections.abc import Mapping

import msgspec
from django.utils.translation import gettext_noop as _

from dashboard.choices import Fault, NodeStatus, RankStatus
from dashboard.lifecycle.failures import Cause
from dashboard.models import Node, Rank, Replica
from dashboard.sentences import Sentence
from engine.errors import Said
from engine.protocol.agent import Observed, ProcessState
from engine.protocol.launch import EPOCH_OVER
from engine.protocol.stats import EngineStats, RankStats

PHASES = {
    "starting": RankStatus.STARTING,
    "meeting": RankStatus.STARTING,
    "loading": RankStatus.LOADING,
    "fitting": RankStatus.LOADING,
    "warming": RankStatus.LOADING,
    "ready": RankStatus.READY,
    "idle": RankStatus.READY,
    "step": RankStatus.READY,
}

ON_ITS_WAY = frozenset({"starting", "loading", "recovering"})
"""What a head says while nothing can be drawn."""

FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that somebody sent; a process that aborts itself has usually lost its peer."""

Fields = dict[str, object]


class Report(msgspec.Struct, frozen=True):
    """One node's report, seen from one launch."""

    node: Node
    launch: str
    processes: Mapping[str, ProcessState]
    stats: EngineStats | None
    current: bool
    """The node has acted on the newest desired state."""

    @classmethod
    def of(cls, node: Node, observed: Observed, launch: str) -> "Report":
        stats = [engine for engine in observed.engines if engine.launch == launch]
        return cls(
            node=node,
            launch=launch,
            processes={state.key: state for state in observed.processes if state.launch == launch},
            stats=stats[0] if stats else None,
            current=observed.generation >= node.desired_generation,
        )

    def rank_process(self, rank: Rank) -> ProcessState | None:
        return self.processes.get(f"{self.launch}:rank{rank.rank}")

    def head_process(self) -> ProcessState | None:
        return self.processes.get(f"{self.launch}:head")

    @property
    def recovers(self) -> bool:
        """Whether this node's head is being started again, or starts its ranks again."""
        head = self.head_process()
        if head is None:
            return False
        return head.restarts > 0 if self.stats is None else self.stats.status in ON_ITS_WAY

    @property
    def waiting(self) -> int:
        """Answers that are open at its head."""
        return self.stats.running + self.stats.waiting if self.stats else 0

    def rank_stats(self, rank: Rank) -> RankStats | None:
        known = self.stats.ranks if self.stats else []
        return next((stats for stats in known if stats.rank == rank.rank), None)


def read_rank(report: Report, replica: Replica, rank: Rank) -> tuple[Fields, Cause | None]:
    """New values for the rank's row, and why the launch is over if this rank ended."""
    if rank.status == RankStatus.EXITED:
        return {}, None
    fields: Fields = {}
    cause = None
    if rank.node_id == report.node.pk:
        name = Sentence(_("Rank %(rank)s on %(node)s"), rank=rank.rank, node=report.node.name)
        fields, cause = _read_process(
            report, replica, report.rank_process(rank), name, rank.status, rank.pid
        )
    stats = report.rank_stats(rank)
    if stats and fields.get("status") != RankStatus.EXITED and _online(report, rank):
        fields |= _read_stats(stats)
    return fields, cause


def restart_cause(report: Report, rank: Rank) -> Sentence | None:
    """Why the rank's agent has put a new process in the place of the one that is known; None where
    it has not, or where nothing was wrong with that one."""
    state = report.rank_process(rank) if rank.node_id == report.node.pk else None
    if state is None or rank.pid is None or state.pid == rank.pid:
        return None
    if state.status == "exited" or state.exit_code in (None, EPOCH_OVER):
        return None
    name = Sentence(_("Rank %(rank)s on %(node)s"), rank=rank.rank, node=report.node.name)
    return exit_cause(name, state).sentence


def read_head(report: Report, replica: Replica) -> tuple[Fields, Cause | None]:
    """The same for the head, on whose node `report` was made."""
    if replica.head_status == RankStatus.EXITED:
        return {}, None
    name = Sentence(_("The head on %(node)s"), node=report.node.name)
    fields, cause = _read_process(
        report, replica, report.head_process(), name, replica.head_status, replica.head_pid
    )
    if report.stats and fields.get("status") != RankStatus.EXITED:
        if report.stats.status == "ready":
            fields["status"] = RankStatus.READY
        elif report.stats.status == "failed" and cause is None:
            cause = Cause(Fault.HEAD, _head_failed(report))
    names = {"status": "head_status", "pid": "head_pid"}
    return {names[key]: value for key, value in fields.items() if key in names}, cause


def why_recovering(report: Report) -> Sentence:
    """The head's own words, or what became of the head."""
    stats, head = report.stats, report.head_process()
    for said in (stats.last_fault, _fault_of(stats)) if stats else ():
        if said:
            return Sentence.of(said)
    name = Sentence(_("The head on %(node)s"), node=report.node.name)
    if head is not None and head.exit_code is not None:
        return exit_cause(name, head).sentence
    return Sentence(_("%(process)s is being started again."), process=name)


def _fault_of(stats: EngineStats) -> Said:
    """Its detail, while that tells of a fault: a new head that gathers its ranks has none."""
    return stats.detail if stats.status in ("recovering", "failed") else Said()


def _head_failed(report: Report) -> Sentence:
    detail = Sentence.of(report.stats.detail) if report.stats else None
    return Sentence(
        _("The head on %(node)s gave up: %(detail)s"),
        node=report.node.name,
        detail=detail or "?",
    )


def _online(report: Report, rank: Rank) -> bool:
    return rank.node_id == report.node.pk or rank.node.status == NodeStatus.ONLINE


def _read_process(
    report: Report,
    replica: Replica,
    state: ProcessState | None,
    name: Sentence,
    status: str,
    pid: int | None,
) -> tuple[Fields, Cause | None]:
    if state is None:
        return _read_absence(name, pid)
    if state.status == "exited":
        fields: Fields = {"status": RankStatus.EXITED, "exit_code": state.exit_code}
        cause = exit_cause(name, state)
        return fields | {"detail": cause.sentence}, cause
    seen_first = pid is None and status != RankStatus.WAITING
    if state.pid != pid and not seen_first:
        return _restarted(state, name), None
    fields = {"pid": state.pid}
    if status == RankStatus.WAITING:
        fields["status"] = RankStatus.READY if replica.ready_at else RankStatus.STARTING
        fields["detail"] = Sentence()
    return fields, None


def _restarted(state: ProcessState, name: Sentence) -> Fields:
    """Its agent has started it, or starts it again, for the same launch."""
    fields: Fields = {"pid": state.pid, "status": RankStatus.STARTING, "detail": Sentence()}
    if state.restarts and state.exit_code not in (None, EPOCH_OVER):
        fields["detail"] = exit_cause(name, state).sentence
    return fields


def _read_absence(name: Sentence, pid: int | None) -> tuple[Fields, Cause | None]:
    """Its agent knows nothing of it yet, or no longer: told what should run, it starts it."""
    if pid is None:
        return {}, None
    sentence = Sentence(_("%(process)s is gone: its node's agent was restarted."), process=name)
    return {"status": RankStatus.WAITING, "detail": sentence, "pid": None}, None


def exit_cause(name: Sentence, state: ProcessState) -> Cause:
    """Why a process that should run has ended."""
    code = state.exit_code
    if state.asked and not _gave_up(state):
        sentence = Sentence(
            _("%(process)s was stopped: its node's agent was shut down."), process=name
        )
        return Cause(Fault.STOPPED, sentence)
    if code is not None and code < 0:
        sentence = Sentence(
            _("%(process)s was killed by signal %(signal)s (%(signal_name)s)."),
            process=name,
            signal=-code,
            signal_name=_signal_name(-code),
        )
        return Cause(Fault.SIGNAL if -code in FROM_OUTSIDE else _own_end(state), sentence)
    if code is None:
        sentence = Sentence(
            _("%(process)s: %(reason)s"), process=name, reason=Sentence.of(state.reason)
        )
    else:
        sentence = Sentence(
            _("%(process)s ended with exit code %(code)s. Its last words: %(words)s"),
            process=name,
            code=code,
            words=state.log_tail[-1] if state.log_tail else "-",
        )
    return Cause(_own_end(state), sentence)


def _gave_up(state: ProcessState) -> bool:
    """A head that ends by request has exit code 0, so this one had its own reason before."""
    return state.role == "head" and state.exit_code is not None and state.exit_code > 0


def _own_end(state: ProcessState) -> Fault:
    if state.role == "head":
        return Fault.HEAD
    # A rank ends well only when its head tells it to, and the head knows why.
    return Fault.EXIT if state.exit_code else Fault.FOLLOWED


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "?"


def _read_stats(stats: RankStats) -> Fields:
    fields: Fields = {"progress": stats.progress, "detail": Sentence(stats.detail)}
    status = PHASES[stats.phase]
    if stats.phase != "starting":
        fields["status"] = status
    if stats.pid is None and not stats.connected:
        return fields if stats.phase != "starting" else {}
    known = {
        name: getattr(stats, name)
        for name in ("kv_heads", "first_layer", "last_layer", "weight_bytes", "kv_bytes")
        if getattr(stats, name) is not None
    }
    texts = {name: getattr(stats, name) for name in ("kernel", "transport") if getattr(stats, name)}
    return fields | known | texts
