"""The engine's error tree, and sentences that are translated where they are shown.

Every error carries one sentence for a person (`str(error)`); the cause travels as `__cause__`.
"""

import msgspec


def gettext_noop(text: str) -> str:
    """Marks a sentence for translation; whoever shows it looks its translation up."""
    return text


class Said(msgspec.Struct, frozen=True):
    """An English template, marked with gettext_noop, and its parts; free text has no parts.

    It crosses every wire as it is, so the reader's language is chosen where it is read.
    """

    template: str = ""
    parts: "dict[str, str | int | float | Said]" = {}

    def __str__(self) -> str:
        """The sentence in English, for logs and for programs."""
        return self.template % self.parts if self.parts else self.template

    def __bool__(self) -> bool:
        return bool(self.template)


Part = str | int | float | Said


def said(template: str, /, **parts: Part) -> Said:
    return Said(template, parts)


SYSTEM_WORDS = (
    gettext_noop("No such file or directory"),
    gettext_noop("Permission denied"),
    gettext_noop("Is a directory"),
    gettext_noop("Input/output error"),
    gettext_noop("Address already in use"),
    gettext_noop("Cannot assign requested address"),
    gettext_noop("Connection refused"),
    gettext_noop("Connection reset by peer"),
    gettext_noop("No route to host"),
    gettext_noop("timed out"),
)
"""What the system says most often, so that translators see it too."""


def system_words(error: OSError) -> Said:
    """The system's own words for what went wrong, without the details Python adds to them."""
    return Said(error.strerror or str(error))


class EngineError(Exception):
    """Something the engine refuses or cannot do; `said` is a sentence for a person."""

    def __init__(self, template: str, /, **parts: Part) -> None:
        super().__init__(template)
        self.said = Said(template, parts)

    def __str__(self) -> str:
        return str(self.said)


class ConfigError(EngineError):
    """A setting or plan that cannot work. Raised at start, never later."""


class CheckpointError(EngineError):
    """A model file that is truncated, unknown or inconsistent; names the file and the place."""


class PlanError(ConfigError):
    """A parallel plan that does not fit the model or the boxes."""


class RequestError(EngineError):
    """A request the engine refuses. `param` names the offending field, `code` is OpenAI's.

    Said in English: it answers programs.
    """

    def __init__(
        self, message: str, *, param: str | None = None, code: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.param = param
        self.code = code
        self.status = status


class ProtocolError(EngineError):
    """A peer said something unexpected: wrong token, version, order or digest."""


class RankError(EngineError):
    """A rank failed while loading or running a step."""


class RankLost(RankError):
    """A rank died, or can no longer be reached. Another one in its place may work."""


class DeadlineError(EngineError):
    """A wait ran out; the message says what was waited for and for how long."""
