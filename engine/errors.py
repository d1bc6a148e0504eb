"""The engine's error tree.

Every error carries one sentence for a person (`str(error)`); the cause travels as `__cause__`.
"""


def gettext_noop(text: str) -> str:
    """Marks a fixed sentence for translation; whoever shows it looks its translation up."""
    return text


class EngineError(Exception):
    """Something the engine refuses or cannot do; the message is a sentence for a person."""


class ConfigError(EngineError):
    """A setting or plan that cannot work. Raised at start, never later."""


class CheckpointError(EngineError):
    """A model file that is truncated, unknown or inconsistent; names the file and the place."""


class PlanError(ConfigError):
    """A parallel plan that does not fit the model or the boxes."""


class RequestError(EngineError):
    """A request the engine refuses. `param` names the offending field, `code` is OpenAI's."""

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


class DeadlineError(EngineError):
    """A wait ran out; the message says what was waited for and for how long."""
