"""llama.cpp through its low-level API: the GGUF file as it is, one sequence a row, greedy."""

import ctypes
import itertools
import os
import time
from dataclasses import dataclass
from typing import Any

import llama_cpp as lc
import numpy as np  # llama_cpp brings it

from engine.bench.compare.players import asks
from engine.bench.compare.players.prompts import Prompts
from engine.bench.compare.players.speech import Player, Refused, play

BATCH = 512
"""Tokens computed at once, of a prompt."""
ROOM = 128
"""Tokens that a sequence may grow beyond its context."""
HALF = 2
"""Bytes of a number in its cache, by default."""
TRIAL_BATCHES = (1, 8)
TRIAL_CONTEXT, TRIAL_TOKENS = 64, 16
_FLASH = {"as it chooses": -1, "off": 0, "on": 1}


@dataclass(frozen=True)
class _Choice:
    unified: bool = False
    """One cache for all sequences, rather than one for each."""
    flash: str = "as it chooses"

    def __str__(self) -> str:
        cache = "one cache for all sequences" if self.unified else "a cache for each sequence"
        return f"{cache}, flash attention {self.flash}"


class LlamaCpp(Player):
    def __init__(self) -> None:
        lc.llama_backend_init()
        self._contexts: dict[tuple[int, int], _Context] = {}
        self._choice = _Choice()

    def on_open(self, ask: asks.Open) -> asks.Opened:
        parameters = lc.llama_model_default_params()
        if ask.device == "cpu":
            parameters.n_gpu_layers = 0
        self._model: Any = lc.llama_model_load_from_file(os.fsencode(ask.gguf), parameters)
        if not self._model:
            raise Refused(f"llama.cpp cannot read {ask.gguf}.")
        self._threads = ask.threads
        self._vocabulary = lc.llama_vocab_n_tokens(lc.llama_model_get_vocab(self._model))
        self._prompts = Prompts(self._vocabulary)
        context = self._context(1, 64)
        context.feed(0, self._prompts.make(16, "open"), 0)
        context.free()
        return asks.Opened(
            name=f"llama.cpp ({lc.__package__} {lc.__version__})",
            how=self._how(),
            works=[asks.DECODE, asks.PREFILL, asks.FIRST_TOKEN],
            step_bytes=int(lc.llama_model_size(self._model)),
            kv_token_bytes=self._kv_token_bytes(),
        )

    def on_tune(self, ask: asks.Tune) -> asks.Tuned:
        """One cache or many, flash attention or not: the least time over two batch sizes."""
        seconds: dict[_Choice, float] = {}
        for unified, flash in itertools.product((False, True), ("off", "on")):
            self._choice = choice = _Choice(unified, flash)
            seconds[choice] = sum(self._trial(batch) for batch in TRIAL_BATCHES)
        self._choice = min(seconds, key=lambda choice: seconds[choice])
        return asks.Tuned(
            self._how(), int(lc.llama_model_size(self._model)), self._kv_token_bytes()
        )

    def on_decode(self, ask: asks.Decode) -> asks.Timed:
        """The contexts are computed once and kept; what a run adds is taken off again."""
        key = (ask.batch, ask.context)
        if key not in self._contexts:
            context = self._context(ask.batch, ask.context + ROOM)
            for row in range(ask.batch):
                prompt = self._prompts.make(ask.context, "decode", row, ask.context)
                context.feed(row, prompt, 0)
            self._contexts[key] = context
        context = self._contexts[key]
        tokens, steps = [100 + row for row in range(ask.batch)], 0
        began = time.perf_counter()
        while steps < ask.tokens and time.perf_counter() - began < ask.most_seconds:
            tokens = context.step(tokens, ask.context + steps)
            steps += 1
        seconds = time.perf_counter() - began
        for row in range(ask.batch):
            context.cut(row, ask.context)
        return asks.Timed(seconds, steps * ask.batch)

    def on_prefill(self, ask: asks.Prefill) -> asks.Timed:
        prompt = self._prompts.make(ask.tokens, "prefill", ask.seed)
        return asks.Timed(self._first(prompt), ask.tokens)

    def on_firsttoken(self, ask: asks.FirstToken) -> asks.Timed:
        """A prefix is reused by copying its sequence, as its server does between slots."""
        prefix = self._prompts.make(ask.prefix, "prefix", ask.seed)
        own = self._prompts.make(ask.own, "own", ask.seed)
        count = ask.prefix + ask.own
        if not ask.shared:
            return asks.Timed(self._first(prefix + own), count)
        # In one cache the copy is no copy: both sequences own the same cells.
        context = self._context(2, count + ROOM, _Choice(True, self._choice.flash))
        context.feed(0, prefix, 0)
        began = time.perf_counter()
        context.copy(0, 1)
        context.feed(1, own, ask.prefix)
        seconds = time.perf_counter() - began
        context.free()
        return asks.Timed(seconds, count)

    def _first(self, prompt: list[int]) -> float:
        context = self._context(1, len(prompt) + ROOM)
        began = time.perf_counter()
        context.feed(0, prompt, 0)
        seconds = time.perf_counter() - began
        context.free()
        return seconds

    def _trial(self, batch: int) -> float:
        ask = asks.Decode(batch=batch, context=TRIAL_CONTEXT, tokens=TRIAL_TOKENS)
        seconds = min(self.on_decode(ask).seconds for _ in range(3))
        self._contexts.pop((batch, TRIAL_CONTEXT)).free()
        return seconds

    def _how(self) -> str:
        return (
            "the GGUF file's own number type, half-precision keys and values, "
            f"{self._threads} threads, {self._choice}"
        )

    def _context(self, rows: int, tokens: int, choice: _Choice | None = None) -> "_Context":
        return _Context(
            self._model, rows, tokens, self._threads, self._vocabulary, choice or self._choice
        )

    def _kv_token_bytes(self) -> int:
        heads, all_heads = lc.llama_model_n_head_kv(self._model), lc.llama_model_n_head(self._model)
        width = lc.llama_model_n_embd(self._model) // all_heads
        return 2 * HALF * int(lc.llama_model_n_layer(self._model) * heads * width)


class _Context:
    """Room for `rows` sequences of `tokens` each."""

    def __init__(
        self, model: Any, rows: int, tokens: int, threads: int, vocabulary: int, choice: _Choice
    ) -> None:
        parameters = lc.llama_context_default_params()
        # Each sequence's room is a multiple of 256 in its cache.
        parameters.n_ctx = rows * (-(-tokens // 256) * 256)
        parameters.n_batch = parameters.n_ubatch = BATCH
        parameters.n_seq_max = rows
        parameters.n_threads = parameters.n_threads_batch = threads
        parameters.no_perf = True
        parameters.kv_unified = choice.unified
        parameters.flash_attn_type = _FLASH[choice.flash]
        self._context: Any = lc.llama_init_from_model(model, parameters)
        if not self._context:
            raise Refused(f"llama.cpp has no room for {rows} sequences of {tokens} tokens.")
        self._memory = lc.llama_get_memory(self._context)
        self._batch = lc.llama_batch_init(max(BATCH, rows), 0, 1)
        self._vocabulary = vocabulary

    def feed(self, row: int, tokens: list[int], start: int) -> int:
        """Compute a prompt from position `start` on; the likeliest token after it."""
        for first in range(0, len(tokens), BATCH):
            part = tokens[first : first + BATCH]
            for index, token in enumerate(part):
                last = first + index == len(tokens) - 1
                self._put(index, token, start + first + index, row, last)
            self._decode(len(part))
        return self._likeliest(len(part) - 1)

    def step(self, tokens: list[int], position: int) -> list[int]:
        """One token of every row."""
        for row, token in enumerate(tokens):
            self._put(row, token, position, row, True)
        self._decode(len(tokens))
        return [self._likeliest(row) for row in range(len(tokens))]

    def cut(self, row: int, length: int) -> None:
        lc.llama_memory_seq_rm(self._memory, row, length, -1)

    def copy(self, source: int, target: int) -> None:
        lc.llama_memory_seq_cp(self._memory, source, target, -1, -1)

    def free(self) -> None:
        lc.llama_batch_free(self._batch)
        lc.llama_free(self._context)

    def _put(self, index: int, token: int, position: int, row: int, wanted: bool) -> None:
        batch = self._batch
        batch.token[index], batch.pos[index] = token, position
        batch.n_seq_id[index], batch.seq_id[index][0] = 1, row
        batch.logits[index] = wanted

    def _decode(self, count: int) -> None:
        self._batch.n_tokens = count
        if code := lc.llama_decode(self._context, self._batch):
            raise Refused(f"llama.cpp could not compute a step (code {code}).")

    def _likeliest(self, index: int) -> int:
        values = lc.llama_get_logits_ith(self._context, index)
        address = ctypes.cast(values, ctypes.POINTER(ctypes.c_float * self._vocabulary))
        return int(_argmax(address.contents))


def _argmax(values: Any) -> int:
    return int(np.frombuffer(values, dtype=np.float32).argmax())


if __name__ == "__main__":
    play(LlamaCpp)
