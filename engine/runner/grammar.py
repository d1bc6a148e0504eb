"""Follows a grammar token by token: which tokens may come next, and what has come.

The answer's grammar is llguidance's (https://github.com/guidance-ai/llguidance); it never raises,
but remembers its first error.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer
from numpy.typing import NDArray

from engine.errors import EngineError

LIMITS = LLParserLimits(initial_lexer_fuel=1_000_000, verbose_errors=False)
"""Fuel is for the whole grammar and, by default, for each token: about 15 ms of it."""
REMEMBERED = 32
"""Grammars whose compiled form is kept, because many requests share one."""


class GrammarError(EngineError):
    """A grammar that cannot be followed. Ends its own request, in English: it answers programs."""


class Vocabulary(Protocol):
    """What the tokens of a model spell; engine.text.tokenizer has one."""

    size: int
    control: dict[str, int]

    @property
    def stop_ids(self) -> frozenset[int]: ...
    def token_bytes(self, token: int) -> bytes: ...
    def encode(self, text: str, *, first: bool = True) -> list[int]: ...


class Follower:
    """One answer's place in its grammar."""

    def __init__(self, matcher: LLMatcher, ends: NDArray[np.intp]) -> None:
        self._matcher = matcher
        self._ends = ends

    def allowed(self, count: int) -> NDArray[np.bool_]:
        """Which of the first `count` ids may come next; only the ends of an answer once it is
        complete. Raises GrammarError when the grammar cannot go on.
        """
        self._check()
        if self._matcher.is_stopped():
            allowed = np.zeros(count, np.bool_)
            allowed[self._ends] = True
            return allowed
        bits = np.frombuffer(self._matcher.compute_bitmask(), np.uint8)
        self._check()
        return np.unpackbits(bits, count=count, bitorder="little").view(np.bool_)

    def advance(self, tokens: Sequence[int]) -> None:
        """Take tokens of the answer, in order; those after its end mean nothing."""
        for token in tokens:
            if not self._matcher.is_stopped():
                self._matcher.consume_token(token)

    def _check(self) -> None:
        if self._matcher.is_error():
            reason = self._matcher.get_error().strip().splitlines() or ["no reason given"]
            raise GrammarError(f"The grammar cannot be followed: {reason[0][:300]}")


class Grammars:
    """Compiles grammars for one model. The first needs the vocabulary, which is read only then."""

    def __init__(self, read: Callable[[], Vocabulary]) -> None:
        self._read = read
        self._compiled: OrderedDict[str, LLMatcher] = OrderedDict()

    def follow(self, grammar: str) -> Follower:
        """From the beginning of an answer. Raises GrammarError."""
        matcher = self._compiled.get(grammar)
        if matcher is None:
            matcher = LLMatcher(self.tokenizer, grammar, log_level=0, limits=LIMITS)
            self._compiled[grammar] = matcher
            if len(self._compiled) > REMEMBERED:
                self._compiled.popitem(last=False)
        self._compiled.move_to_end(grammar)
        return Follower(matcher.deep_copy(), self._ends)

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        return self._read()

    @cached_property
    def _ends(self) -> NDArray[np.intp]:
        return np.array(sorted(self._vocabulary.stop_ids), np.intp)

    @cached_property
    def tokenizer(self) -> LLTokenizer:
        ends = sorted(self._vocabulary.stop_ids)
        if not ends:
            raise GrammarError("This model has no token that ends an answer.")
        try:
            # It reads the attributes of its own wrapper class; these words have them all.
            return LLTokenizer(_Words(self._vocabulary, ends), eos_token=ends)  # type: ignore[arg-type]
        except ValueError as error:
            raise GrammarError(f"This model's tokens cannot follow a grammar: {error}") from error


class _Words:
    """A vocabulary in the form that llguidance reads; it names these attributes."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary, ends: Iterable[int]) -> None:
        names = {token: name.encode() for name, token in vocabulary.control.items()}
        self._vocabulary = vocabulary
        self.eos_token_id = min(ends)
        self.special_token_ids = sorted({*names, *ends})
        self.tokens = [
            names.get(token) or vocabulary.token_bytes(token) for token in range(vocabulary.size)
        ]

    def __call__(self, text: bytes | str) -> list[int]:
        """Ids that the model itself would use for a text that the grammar prescribes."""
        wanted = text.encode() if isinstance(text, str) else text
        ids = self._vocabulary.encode(wanted.decode("utf-8", "replace"), first=False)
        spelled = b"".join(map(self._vocabulary.token_bytes, ids))
        return ids if spelled == wanted else self._spell(wanted)

    def _spell(self, text: bytes) -> list[int]:
        """The longest token that fits, again and again; as far as there is one."""
        ids: list[int] = []
        while text:
            lengths = range(min(len(text), self._longest), 0, -1)
            found = next((length for length in lengths if text[:length] in self._ids), 0)
            if not found:
                return ids
            ids.append(self._ids[text[:found]])
            text = text[found:]
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        special = set(self.special_token_ids)
        return {text: token for token, text in enumerate(self.tokens) if token not in special}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids), default=0)
