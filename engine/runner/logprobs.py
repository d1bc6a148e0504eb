"""What the model itself thought of a token: natural logarithms of probabilities."""

import numpy as np

from engine.protocol.steps import TokenLogprobs
from engine.runner.filters import Floats, largest


def report(logits: Floats, token: int, top: int) -> TokenLogprobs:
    """Of the log-softmax of one row of the model's logits: the token's, and the `top` likeliest.

    Float32, from the logits as they are: before bias, penalties and temperature.
    """
    highest = logits.max()
    normaliser = highest + np.float32(np.log(np.exp(logits - highest).sum()))
    own = logits[token]
    before = np.count_nonzero(logits > own) + np.count_nonzero(logits[:token] == own)
    best = largest(logits, top) if top > 0 else np.empty(0, np.intp)
    best = best[np.argsort(-logits[best], kind="stable")]
    values = (logits[best] - normaliser).tolist()
    return TokenLogprobs(
        token=token,
        logprob=float(own - normaliser),
        rank=int(before) + 1,
        top=tuple(zip(best.tolist(), values, strict=True)),
    )
