"""What a contestant can be asked, and how it answers. Both sides of the wire know these."""

from dataclasses import dataclass, field

DECODE, PREFILL, FIRST_TOKEN, SERVE = "decode", "prefill", "first_token", "serve"


@dataclass(frozen=True, kw_only=True)
class Open:
    """Load the model and compute one token; the first thing asked of a contestant."""

    gguf: str
    folder: str
    """The same weights as a Hugging Face folder; empty where nobody needs one."""
    threads: int = 2
    device: str = "cpu"
    longest: int = 4352
    """Tokens of the longest sequence."""
    kv_tokens: int = 65536
    """Room for keys and values."""
    settings: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Opened:
    name: str
    """With its version."""
    how: str
    """The settings that matter, in words."""
    works: list[str]
    """What else it can be asked."""
    step_bytes: int | None = None
    """Of weights that a decode step reads, whatever its batch; None where it does not tell."""
    kv_token_bytes: int | None = None
    """Keys and values of one token."""


@dataclass(frozen=True, kw_only=True)
class Tune:
    """Find out which of its own settings are the fastest here; nothing where there is no choice."""


@dataclass(frozen=True)
class Tuned:
    how: str
    step_bytes: int | None = None
    kv_token_bytes: int | None = None


@dataclass(frozen=True, kw_only=True)
class Decode:
    """`batch` answers at once, each `tokens` long after `context` tokens of its own. Only steps
    with all of them count."""

    batch: int
    context: int
    tokens: int
    most_seconds: float = 30.0


@dataclass(frozen=True, kw_only=True)
class Prefill:
    """The first token after a prompt that was never seen before."""

    tokens: int
    seed: int


@dataclass(frozen=True, kw_only=True)
class FirstToken:
    """The first token after `prefix` and `own` tokens; `shared`: the prefix was seen before."""

    prefix: int
    own: int
    shared: bool
    seed: int


@dataclass(frozen=True, kw_only=True)
class Serve:
    """Conversations with many turns, `open` of them at any time."""

    open: int
    ramp: float
    """Seconds over which the first ones come."""
    seconds: float
    """Measured after that."""
    seed: int = 7


@dataclass(frozen=True)
class Timed:
    seconds: float
    tokens: int


@dataclass(frozen=True, kw_only=True)
class Served:
    """Seconds, but for the first and the counts. A turn without a token at the end counts with the
    time it had waited. None where nothing came."""

    tokens_per_second: float
    tokens: int
    turns: int
    """Asked."""
    unanswered: int
    """Without a token when the time was over."""
    ttft_p50: float | None
    ttft_p95: float | None
    itl_p50: float | None
    itl_p95: float | None


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """Of the machine: bytes read in a second from memory by all threads."""

    threads: int


@dataclass(frozen=True, kw_only=True)
class Multiply:
    """Of the machine: the time of a model's matrices alone, once each."""

    threads: int
    rows: int
    shapes: list[tuple[int, int]]
    """(outputs, inputs)"""
    kind: str
    """`int8`, `quantized` or `fp32`"""


Ask = Open | Tune | Decode | Prefill | FirstToken | Serve | Bandwidth | Multiply
ASKS: dict[str, type[Ask]] = {
    kind.__name__: kind
    for kind in (Open, Tune, Decode, Prefill, FirstToken, Serve, Bandwidth, Multiply)
}
Said = Opened | Tuned | Timed | Served
