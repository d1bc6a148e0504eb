"""What the panel adds to the environment of this node's engines. It may hold secrets."""

from collections.abc import Mapping

from engine import logs
from engine.logs import HIDDEN, TOO_SHORT

SECRET_WORDS = ("TOKEN", "PASSWORD", "SECRET", "KEY", "PROXY")


class EngineEnvironment:
    """The variables as last told. They reach a process when it starts, and no log or file."""

    def __init__(self) -> None:
        self.variables: Mapping[str, str] = {}
        self._secrets: set[str] = set()
        """Of before too: a process that has them may print them yet."""

    def set(self, variables: Mapping[str, str]) -> bool:
        """Whether anything is different now."""
        if dict(variables) == dict(self.variables):
            return False
        self.variables = dict(variables)
        fresh = {value for name, value in variables.items() if _is_secret(name, value)}
        self._secrets |= fresh
        logs.hide(*fresh)
        return True

    def clean(self, line: str) -> str:
        for secret in self._secrets:
            line = line.replace(secret, HIDDEN)
        return line


def _is_secret(name: str, value: str) -> bool:
    """A proxy's address is one only with a password in it."""
    if len(value) < TOO_SHORT or not any(word in name.upper() for word in SECRET_WORDS):
        return False
    return "PROXY" not in name.upper() or "@" in value
