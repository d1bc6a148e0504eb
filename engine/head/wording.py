"""How a head speaks of its ranks."""

from collections.abc import Mapping, Sequence
from functools import reduce

from engine.errors import DeadlineError, Part, RankLost, Said, said
from engine.errors import gettext_noop as _
from engine.head.peer import RankPeer
from engine.protocol.steps import Activity, Doing, Phase, Ready

PHASES: Mapping[Phase, str] = {
    "starting": _("starting"),
    "meeting": _("meeting the others"),
    "loading": _("loading"),
    "fitting": _("waiting for the others to load"),
    "warming": _("warming up"),
    "ready": _("ready"),
    "idle": _("idle"),
    "step": _("computing a step"),
}

DOINGS: Mapping[Doing, str] = {
    "waiting": _("waiting"),
    "compute": _("computing"),
    "all-reduce": _("all-reduce"),
    "gather": _("gather"),
    "send": _("sending"),
    "receive": _("receiving"),
    "sample": _("drawing tokens"),
}


def lost(peer: RankPeer) -> RankLost:
    if peer.ready is None:
        return RankLost(
            _("Rank %(rank)s has gone: its connection closed while it was %(phase)s."),
            rank=peer.rank,
            phase=said(PHASES[peer.phase]),
        )
    if peer.phase == "step":
        return RankLost(
            _("Rank %(rank)s has gone: its connection closed during step %(step)s."),
            rank=peer.rank,
            step=peer.step,
        )
    return RankLost(
        _("Rank %(rank)s has gone: its connection closed while it was idle."), rank=peer.rank
    )


def mute(peer: RankPeer, seconds: float) -> RankLost:
    """It no longer answers; says what it was at when it last did."""
    parts: dict[str, Part] = {"rank": peer.rank, "seconds": round(seconds, 1)}
    if peer.phase == "idle" or peer.phase == "ready":
        return RankLost(
            _("Rank %(rank)s stopped answering while it was idle (%(seconds)s s)."), **parts
        )
    if peer.phase == "step" and peer.activity.doing:
        return RankLost(
            _("Rank %(rank)s stopped answering in %(doing)s (%(seconds)s s)."),
            doing=describe_activity(peer.activity),
            **parts,
        )
    if peer.phase == "step":
        return RankLost(
            _("Rank %(rank)s stopped answering during step %(step)s (%(seconds)s s)."),
            step=peer.step,
            **parts,
        )
    return RankLost(
        _("Rank %(rank)s stopped answering while it was %(phase)s (%(seconds)s s)."),
        phase=said(PHASES[peer.phase]),
        **parts,
    )


def stuck(peers: Sequence[RankPeer], step: int, seconds: float) -> DeadlineError:
    """They answer, but get nowhere."""
    parts: dict[str, Part] = {
        "ranks": name_ranks([peer.rank for peer in peers]),
        "step": step,
        "seconds": round(seconds, 1),
    }
    doing = peers[0].activity
    if not doing.doing:
        return DeadlineError(
            _("No progress of %(ranks)s in step %(step)s for %(seconds)s s."), **parts
        )
    return DeadlineError(
        _("No progress of %(ranks)s in step %(step)s for %(seconds)s s: %(doing)s."),
        doing=describe_activity(doing),
        **parts,
    )


def describe_activity(activity: Activity) -> Said:
    """E.g. `all-reduce, layer 12`."""
    if not activity.doing:
        return Said()
    doing = said(DOINGS[activity.doing])
    if activity.layer is None:
        return doing
    return said(_("%(doing)s, layer %(layer)s"), doing=doing, layer=activity.layer)


def name_ranks(ranks: Sequence[int]) -> Said:
    if len(ranks) == 1:
        return said(_("rank %(rank)s"), rank=ranks[0])
    return said(_("ranks %(ranks)s"), ranks=", ".join(map(str, ranks)))


def describe_progress(peer: RankPeer) -> Said:
    """E.g. `Rank 1 is loading, 40 %: layer 12`."""
    parts: dict[str, Part] = {"rank": peer.rank, "phase": said(PHASES[peer.phase])}
    if peer.progress is None:
        state = Said(_("Rank %(rank)s is %(phase)s"), parts)
    else:
        parts["percent"] = round(100 * peer.progress)
        state = Said(_("Rank %(rank)s is %(phase)s, %(percent)s %%"), parts)
    if not peer.detail:
        return state
    return said(_("%(state)s: %(detail)s"), state=state, detail=said(peer.detail))


def joined(states: Sequence[Said]) -> Said:
    return reduce(lambda one, other: said(_("%(one)s; %(other)s"), one=one, other=other), states)


def describe_ready(rank: int, ready: Ready) -> str:
    return (
        f"Rank {rank} is ready, loaded in {ready.load_seconds:.1f} s: layers {ready.first_layer} "
        f"to {ready.last_layer}, {ready.kv_heads} KV heads, {ready.weight_bytes / 1e6:.0f} MB of "
        f"weights, {ready.kv_bytes / 1e6:.0f} MB of KV, {ready.kernel}, {ready.transport}."
    )
