"""What the model itself thought of a token: natural logarithms of probabilities."""

import numpy as np

from engine.protocol.steps import TokenLogprobs
from engine.runner.filters import Floats, ranked


def report(logits: Floats, token: int, top: int) -> TokenLogprobs:
    """Of the log-softmax of one row of the model's logits: the token's, and the `top` likeliest.

    Float32, from the logits as they are: before bias, penalties and temperature.
    """
    largest = logits.max()
    total = np.exp(logits - largest).sum(dtype=np.float64)
    normaliser = largest + np.float32(np.log(total))
    own = logits[token]
    before = np.count_nonzero(logits > own) + np.count_nonzero(logits[:token] == own)
    best = ranked(logits, top) if top > 0 else np.empty(0, np.intp)
    values = (logits[best] - normaliser).tolist()
    return TokenLogprobs(
        token=token,
        logprob=float(own - normaliser),
        rank=int(before) + 1,
        top=tuple(zip(best.tolist(), values, strict=True)),
    )
