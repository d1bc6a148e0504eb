"""The machine itself: how fast it reads memory, and how fast it multiplies a model's matrices."""

import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from engine.bench.compare.players import asks
from engine.bench.compare.players.speech import Player, Refused, play

READ_BYTES = 256 << 20
"""Far more than any cache holds."""
TRIES = 5
SECONDS = 2.0
"""Of trying; once at least."""


class Machine(Player):
    def __init__(self) -> None:
        self._block: Tensor | None = None
        self._weights: dict[str, list[Any]] = {}

    def on_open(self, ask: asks.Open) -> asks.Opened:
        torch.set_num_threads(ask.threads)
        return asks.Opened(
            name="the machine", how=f"torch {torch.__version__}, {ask.threads} threads", works=[]
        )

    def on_bandwidth(self, ask: asks.Bandwidth) -> asks.Timed:
        """The faster of a sum and a product with a vector: both read all and keep nothing."""
        torch.set_num_threads(ask.threads)
        if self._block is None:
            self._block = torch.ones(READ_BYTES // 4).view(-1, 4096)
        block, vector = self._block, torch.ones(4096)
        seconds = min(_best(block.sum), _best(lambda: block @ vector))
        return asks.Timed(seconds=seconds, tokens=READ_BYTES)

    def on_multiply(self, ask: asks.Multiply) -> asks.Timed:
        torch.set_num_threads(ask.threads)
        make = _MAKERS.get(ask.kind)
        if make is None:
            raise Refused(f"The machine's rate for {ask.kind} is not measured.")
        if ask.kind not in self._weights:
            self._weights[ask.kind] = [_weight(ask.kind, n, k) for n, k in ask.shapes]
        cases = [make(ask.rows, weight) for weight in self._weights[ask.kind]]
        return asks.Timed(_best(lambda: [case() for case in cases]), ask.rows)


def _weight(kind: str, n: int, k: int) -> Any:
    if kind == "int8":
        return torch.randint(-127, 127, (n, k), dtype=torch.int8)
    if kind == "quantized":
        if "fbgemm" in torch.backends.quantized.supported_engines:
            torch.backends.quantized.engine = "fbgemm"
        whole = torch.quantize_per_tensor(torch.randn(n, k), 0.05, 0, torch.qint8)
        return k, torch.ops.quantized.linear_prepack(whole, None)
    return torch.randn(n, k)


def _int8(rows: int, weight: Tensor) -> Callable[[], Tensor]:
    x = torch.randint(-127, 127, (rows, weight.shape[1]), dtype=torch.int8)
    return lambda: torch._int_mm(x, weight.t())


def _quantized(rows: int, weight: tuple[int, Any]) -> Callable[[], Tensor]:
    """int8 through the library that torch quantises models with: the quicker one where there are no
    instructions for whole products of int8. It quantises the activations as well."""
    x = torch.randn(rows, weight[0])
    multiply: Callable[..., Tensor] = torch.ops.quantized.linear_dynamic
    return lambda: multiply(x, weight[1], reduce_range=False)


def _fp32(rows: int, weight: Tensor) -> Callable[[], Tensor]:
    x = torch.randn(rows, weight.shape[1])
    return lambda: F.linear(x, weight)


_MAKERS: dict[str, Callable[[int, Any], Callable[[], Tensor]]] = {
    "int8": _int8,
    "quantized": _quantized,
    "fp32": _fp32,
}


def _best(work: Callable[[], object]) -> float:
    """Least seconds: what the machine can do when it is let."""
    work()
    seconds: list[float] = []
    began = time.perf_counter()
    while len(seconds) < TRIES and (not seconds or time.perf_counter() - began < SECONDS):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    with torch.inference_mode():
        play(Machine)
