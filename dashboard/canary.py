"""A few requests whose answers show whether a launch is any good. Blocking; the judging is pure."""

import http.client
import json
import math
import time

import msgspec
from django.utils.translation import gettext_noop as _

from dashboard import heads
from dashboard.models import Replica
from dashboard.sentences import Sentence

TEXT = (
    "The library opens at nine in the morning and closes at six in the evening. On Saturdays it "
    "is open until noon, and on Sundays it stays closed. If you want to borrow a book, please "
    "bring your card with you. You may keep the book for four weeks, and if nobody else is "
    "waiting for it, you may keep it for another four."
)
"""Plain prose that every language model has seen the like of; longer than a few blocks."""
PROMPT = "Count from one to twenty in words: one, two, three,"
TOKENS = 12
SECONDS = 20.0
"""For all of it: a worker that takes longer counts as lost."""

MORE_NATS = 0.7
"""Of the same model, in natural logarithms a token: twice the perplexity. int8 costs about 0.01,
int4 in groups of 32 about 0.02, fp8 about as much; permuted or random weights cost several."""
NOISE = 0.6
"""Of the logarithm of the vocabulary: guessing among all tokens is 1, no text is that strange."""
SLOWER, SLOWER_SECONDS = 3.0, 1.0
"""Times, and seconds on top: the canary runs beside real work, and one hiccup decides nothing."""
TRIES = 3


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    nats: float
    """Mean negative log-probability of a token of `TEXT`."""
    first_token: float
    """Seconds to one token."""
    per_token: float
    """Seconds a token after that."""


class CanaryError(Exception):
    """It did not answer as it should; the text is for the log and the reason."""


def measure(replica: Replica, name: str) -> Measured:
    """Ask a launch directly, past the gateway. Raises CanaryError."""
    deadline = time.monotonic() + SECONDS
    scored = _complete(replica, name, TEXT, 0, deadline, echo=True, logprobs=0)
    logprobs = [one for one in scored["logprobs"]["token_logprobs"] if one is not None]
    if not logprobs or not all(math.isfinite(one) for one in logprobs):
        raise CanaryError("it gave no log-probabilities")
    began = time.monotonic()
    _complete(replica, name, PROMPT, 1, deadline)
    first = time.monotonic() - began
    began = time.monotonic()
    _complete(replica, name, PROMPT, TOKENS, deadline)
    rest = max(0.0, time.monotonic() - began - first)
    return Measured(
        nats=-sum(logprobs) / len(logprobs), first_token=first, per_token=rest / (TOKENS - 1)
    )


def verdict(
    new: Measured, old: Measured | None, *, vocabulary: int, same_model: bool
) -> Sentence | None:
    """Why the new launch is not to be trusted; None where nothing speaks against it.

    `vocabulary`: tokens it chooses from; `old`: what the launch that it replaces measured, None
    where that did not answer.
    """
    if new.nats > NOISE * math.log(vocabulary):
        return Sentence(
            _(
                "Its answers are noise: it finds plain text hardly likelier than chance "
                "(%(nats)s nats a token)."
            ),
            nats=round(new.nats, 2),
        )
    if old is None:
        return None
    if same_model and new.nats > old.nats + MORE_NATS:
        return Sentence(
            _(
                "Its answers are much worse: plain text costs it %(new)s nats a token, and "
                "%(old)s before."
            ),
            new=round(new.nats, 2),
            old=round(old.nats, 2),
        )
    to_first = _("It is too slow: %(new)s s to the first token, and %(old)s before.")
    a_token = _("It is too slow: %(new)s s a token, and %(old)s before.")
    for words, now, before in (
        (to_first, new.first_token, old.first_token),
        (a_token, new.per_token, old.per_token),
    ):
        if now > SLOWER * before + SLOWER_SECONDS:
            return Sentence(words, new=round(now, 2), old=round(before, 2))
    return None


def _complete(
    replica: Replica, name: str, prompt: str, tokens: int, deadline: float, **fields: object
) -> dict[str, dict[str, list[float | None]]]:
    body = {"model": name, "prompt": prompt, "max_tokens": tokens, "temperature": 0, **fields}
    left = deadline - time.monotonic()
    if left <= 0:
        raise CanaryError(f"it took longer than {SECONDS:.0f} s")
    try:
        status, answer = heads.post(replica, "/v1/completions", body, left)
        if status != 200:
            raise CanaryError(f"HTTP {status}: {answer.decode(errors='replace')[:200]}")
        choice: dict[str, dict[str, list[float | None]]] = json.loads(answer)["choices"][0]
    except (OSError, http.client.HTTPException) as error:
        raise CanaryError(str(error) or type(error).__name__) from error
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise CanaryError("its answer cannot be read") from error
    return choice
