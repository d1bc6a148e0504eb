"""How a head speaks of its ranks."""

from collections.abc import Mapping, Sequence
from functools import reduce

from engine.errors import Part, RankError, Said, said
from engine.errors import gettext_noop as _
from engine.head.peer import RankPeer
from engine.protocol.steps import Phase, Ready

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


def lost(peer: RankPeer) -> RankError:
    if peer.ready is None:
        return RankError(
            _("Rank %(rank)s has gone: its connection closed while it was %(phase)s."),
            rank=peer.rank,
            phase=said(PHASES[peer.phase]),
        )
    if peer.phase == "step":
        return RankError(
            _("Rank %(rank)s has gone: its connection closed during step %(step)s."),
            rank=peer.rank,
            step=peer.step,
        )
    return RankError(
        _("Rank %(rank)s has gone: its connection closed while it was idle."), rank=peer.rank
    )


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
