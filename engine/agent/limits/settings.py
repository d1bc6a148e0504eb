"""Brings accelerators to what is wanted, and back. Blocking; keeps nothing but `originals`."""

from collections.abc import Mapping

from engine.agent.limits.devices import Devices, Unsettable
from engine.agent.limits.originals import Original, Originals
from engine.errors import Said, said, system_words
from engine.errors import gettext_noop as _
from engine.protocol.agent import Limits, LimitState

NOTHING_HERE = _("This node has no accelerator that could be limited.")
NOT_LESS = _("The driver allows no less than %(watts)s W.")
LOWER_BEFORE = _("It was limited to this before, and is not raised.")
NOT_KEPT = _("What it is set to now cannot be written down (%(reason)s), so it is left as it is.")
NOT_BACK = _("It could not be set back to what it was: %(reason)s")
OTHER_MAKER = _("Limits of this maker's accelerators cannot be set from here.")

MEGA = 1e6


def settle(
    devices: Devices,
    wanted: Limits,
    originals: Originals,
    indices: Mapping[str, int],
    others: tuple[int, ...],
) -> list[LimitState]:
    """Set what is wanted, undo what no longer is, and say what became of it.

    `indices`: by UUID, how the node counts its accelerators; `others` are those of makers whose
    limits nobody can set here.
    """
    if not (_asks(wanted) or originals):
        return []
    try:
        uuids = devices.uuids()
    except Unsettable as error:
        return [] if not _asks(wanted) else _all_refused(wanted, indices, others, error.said)
    states: list[LimitState] = []
    for number, uuid in enumerate(uuids):
        target = f"gpu:{indices.get(uuid, number)}"
        states += _settle_power(devices, number, uuid, target, wanted.power_watts, originals)
        states += _settle_clock(devices, number, uuid, target, wanted.clock_hertz, originals)
    if not uuids and not others:
        return _refused(wanted, "node", said(NOTHING_HERE))
    for index in others:
        states += _refused(wanted, f"gpu:{index}", said(OTHER_MAKER))
    return states


def _asks(wanted: Limits) -> bool:
    return wanted.power_watts is not None or wanted.clock_hertz is not None


def _all_refused(
    wanted: Limits, indices: Mapping[str, int], others: tuple[int, ...], reason: Said
) -> list[LimitState]:
    """The driver does not answer, or there is none."""
    states: list[LimitState] = []
    for index in indices.values():
        states += _refused(wanted, f"gpu:{index}", reason)
    for index in others:
        states += _refused(wanted, f"gpu:{index}", said(OTHER_MAKER))
    return states or _refused(wanted, "node", said(NOTHING_HERE))


def _refused(wanted: Limits, target: str, reason: Said) -> list[LimitState]:
    states = []
    if wanted.power_watts is not None:
        states.append(LimitState(what="power", target=target, value=None, reason=reason))
    if wanted.clock_hertz is not None:
        states.append(LimitState(what="clock", target=target, value=None, reason=reason))
    return states


def _settle_power(
    devices: Devices,
    number: int,
    uuid: str,
    target: str,
    watts: float | None,
    originals: Originals,
) -> list[LimitState]:
    before = originals.of(uuid)
    if watts is None and before.power_milliwatts is None:
        return []
    try:
        if watts is None:
            assert before.power_milliwatts is not None
            devices.set_power_limit(number, before.power_milliwatts)
            originals.keep(uuid, Original(None, before.clock_locked))
            return []
        value, reason = _limit_power(devices, number, uuid, watts, originals)
    except (Unsettable, OSError) as error:
        why = _why(error)
        reason = why if watts is not None else said(NOT_BACK, reason=why)
        return [LimitState(what="power", target=target, value=None, reason=reason)]
    return [LimitState(what="power", target=target, value=value, reason=reason)]


def _limit_power(
    devices: Devices, number: int, uuid: str, watts: float, originals: Originals
) -> tuple[float, Said]:
    before, now = originals.of(uuid), devices.power_limit(number)
    original = now if before.power_milliwatts is None else before.power_milliwatts
    least, _most = devices.power_range(number)
    asked = round(watts * 1000)
    aim = min(max(asked, least), original)
    if aim != now:
        originals.keep(uuid, Original(original, before.clock_locked))
        try:
            devices.set_power_limit(number, aim)
        except Unsettable:
            originals.keep(uuid, before)
            raise
    if aim > asked:
        return aim / 1000, said(NOT_LESS, watts=least // 1000)
    return aim / 1000, said(LOWER_BEFORE) if aim < asked else Said()


def _settle_clock(
    devices: Devices,
    number: int,
    uuid: str,
    target: str,
    hertz: float | None,
    originals: Originals,
) -> list[LimitState]:
    """A lock cannot be read, and is gone with the driver: it is set again every time."""
    before = originals.of(uuid)
    if hertz is None and not before.clock_locked:
        return []
    try:
        if hertz is None:
            devices.free_clock(number)
            originals.keep(uuid, Original(before.power_milliwatts, False))
            return []
        _lock(devices, number, uuid, int(hertz / MEGA), originals)
    except (Unsettable, OSError) as error:
        why = _why(error)
        reason = why if hertz is not None else said(NOT_BACK, reason=why)
        return [LimitState(what="clock", target=target, value=None, reason=reason)]
    return [LimitState(what="clock", target=target, value=hertz)]


def _lock(devices: Devices, number: int, uuid: str, megahertz: int, originals: Originals) -> None:
    before = originals.of(uuid)
    if not before.clock_locked:
        originals.keep(uuid, Original(before.power_milliwatts, True))
    try:
        devices.lock_clock(number, megahertz)
    except Unsettable:
        originals.keep(uuid, before)
        raise


def _why(error: Unsettable | OSError) -> Said:
    if isinstance(error, Unsettable):
        return error.said
    return said(NOT_KEPT, reason=system_words(error))
