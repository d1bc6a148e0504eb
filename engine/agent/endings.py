"""Why a process ended, as a sentence."""

import signal

from engine.errors import Part, Said, said
from engine.errors import gettext_noop as _


def exit_reason(code: int, asked: bool, last_line: str) -> Said:
    """One sentence; the last log line is added where it is likely to be the cause."""
    if code < 0:
        return _killed(-code, asked, last_line)
    if asked:
        return said(_("Stopped as asked (exit code %(code)s)."), code=code)
    if code == 0:
        return said(_("It ended by itself (exit code 0)."))
    if last_line:
        return said(_("It exited with code %(code)s: %(words)s"), code=code, words=last_line)
    return said(_("It exited with code %(code)s."), code=code)


def _killed(number: int, asked: bool, last_line: str) -> Said:
    parts: dict[str, Part] = {"number": number, "name": signal_name(number)}
    if asked:
        return Said(_("Stopped as asked: killed by signal %(number)s (%(name)s)."), parts)
    if number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT) or not last_line:
        return Said(_("It was killed by signal %(number)s (%(name)s)."), parts)
    parts["words"] = last_line
    return Said(_("It was killed by signal %(number)s (%(name)s): %(words)s"), parts)


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
