"""Answers that began elsewhere: what they hold so far is told again, and then they go on.

A token's text, and whether it ends the answer, follow from the tokens before it alone. So the same
tokens give the same deltas, wherever and how often they are told.
"""

from collections.abc import Iterator, Sequence

import msgspec

from engine.core.request import Event, Request
from engine.head.answer import Answer, Delta


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """One answer so far."""

    tokens: Sequence[int] = ()
    """Those known of it; later ones are drawn again, the same ones for the same seed."""
    cached_tokens: int | None = None
    """What of its prompt was found in the cache when it began; None where that is not known."""
    ended: bool = False
    """Nothing follows, although the tokens alone would not say so."""
    told: bool = False
    """Its beginning has reached the caller, with all that was to be said of the prompt."""


def replay(request: Request, answer: Answer, begun: Begun, now: float) -> Iterator[Delta]:
    """What the answer has told so far. `request.finish` is set when nothing is left to draw."""
    request.cached_tokens = begun.cached_tokens
    if begun.told:
        request.score_prompt, request.share_prefix = False, True
    for token in begun.tokens:
        delta = answer.take(Event(request, token, request.accept(token, now)))
        request.finish = delta.finish
        yield delta
        if delta.finish is not None:
            return
    if begun.ended:
        request.finish = "stop"
        yield answer.take(Event(request, finish="stop"))
