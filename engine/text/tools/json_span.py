"""Where a JSON object ends, found while it is still being written."""

import re

_TOKEN = re.compile(r'\\.|\\\Z|["{}\[\]]', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


class JsonSpan:
    """Follows strings and brackets only; what stands between them is not judged."""

    def __init__(self, opened: str = "") -> None:
        """`opened`: brackets that were opened before, e.g. `{` to find the end of that object."""
        self._closers = [_CLOSING[bracket] for bracket in opened]
        self._in_string = False
        self._escaped = False
        self.done = False
        self.broken = False
        """A bracket closed that was not open."""

    def feed(self, text: str) -> int:
        """How many characters belong to the object; all of them while it is open."""
        begin = int(self._escaped and bool(text))
        self._escaped = self._escaped and not text
        for match in _TOKEN.finditer(text, begin):
            token = match[0]
            if token[0] == "\\":
                self._escaped = len(token) == 1
            elif token == '"':
                self._in_string = not self._in_string
            elif not self._in_string and not self._take(token):
                return match.start() if self.broken else match.end()
        return len(text)

    def _take(self, bracket: str) -> bool:
        """False when the object ends here, well or not."""
        if bracket in _CLOSING:
            self._closers.append(_CLOSING[bracket])
        elif not self._closers or self._closers.pop() != bracket:
            self.broken = True
        else:
            self.done = not self._closers
        return not (self.done or self.broken)
