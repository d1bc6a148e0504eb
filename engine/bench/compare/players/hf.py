"""transformers, eager: its own forward pass step by step, greedy, with its own caches."""

import copy
import inspect
import time
from typing import Any

import torch
import transformers

from engine.bench.compare.players import asks
from engine.bench.compare.players.prompts import Prompts
from engine.bench.compare.players.speech import Player, play

TRIAL_BATCHES = (1, 8)
TRIAL_CONTEXT, TRIAL_TOKENS = 64, 12
TRIAL_SECONDS = 3.0
"""For one that is not worth it: bfloat16 is very slow where a processor has to imitate it."""
ROOM = 128
"""Tokens a static cache holds beyond the context."""


class Transformers(Player):
    def __init__(self) -> None:
        logging: Any = transformers.logging
        logging.set_verbosity_error()
        self._static = False
        self._dtype = torch.float32
        self._caches: dict[tuple[int, int], Any] = {}
        self._prefixes: dict[int, Any] = {}

    def on_open(self, ask: asks.Open) -> asks.Opened:
        torch.set_num_threads(ask.threads)
        self._ask = ask
        self._model = self._load(torch.float32)
        self._prompts = Prompts(self._model.config.vocab_size)
        self._forward([self._prompts.make(16, "open")], self._dynamic())
        return asks.Opened(
            name=f"transformers {transformers.__version__}",
            how=self._how(),
            works=[asks.DECODE, asks.PREFILL, asks.FIRST_TOKEN],
            step_bytes=self._step_bytes(),
            kv_token_bytes=self._kv_token_bytes(),
        )

    def on_tune(self, ask: asks.Tune) -> asks.Tuned:
        """fp32 or bf16, a growing or a fixed cache: the least time over two batch sizes."""
        kept: tuple[float, Any, bool, torch.dtype] | None = None
        tried: list[str] = []
        for dtype in (torch.float32, torch.bfloat16):
            self._model, self._dtype = self._load(dtype), dtype
            for static in (False, True):
                self._static = static
                self._caches.clear()
                seconds = sum(self._trial(batch) for batch in TRIAL_BATCHES)
                tried.append(f"{self._kind()} {1e3 * seconds:.0f} ms")
                if kept is None or seconds < kept[0]:
                    kept = (seconds, self._model, static, dtype)
        self._caches.clear()
        assert kept is not None
        _seconds, self._model, self._static, self._dtype = kept
        how = f"{self._how()}; tried: {', '.join(tried)}"
        return asks.Tuned(how, self._step_bytes(), self._kv_token_bytes())

    def on_decode(self, ask: asks.Decode) -> asks.Timed:
        """The context is computed once and kept; what a run adds is taken off again."""
        key = (ask.batch, ask.context)
        if key not in self._caches:
            prompts = [
                self._prompts.make(ask.context, "decode", index, ask.context)
                for index in range(ask.batch)
            ]
            cache = self._fixed(ask.context) if self._static else self._dynamic()
            self._caches[key] = (cache, self._forward(prompts, cache))
        cache, first = self._caches[key]
        tokens, steps = first, 0
        began = time.perf_counter()
        while steps < ask.tokens and time.perf_counter() - began < ask.most_seconds:
            tokens = self._forward(tokens, cache)
            steps += 1
        seconds = time.perf_counter() - began
        cache.crop(-steps)
        return asks.Timed(seconds=seconds, tokens=steps * ask.batch)

    def on_prefill(self, ask: asks.Prefill) -> asks.Timed:
        prompt = self._prompts.make(ask.tokens, "prefill", ask.seed)
        return asks.Timed(seconds=self._first(prompt, self._dynamic()), tokens=ask.tokens)

    def on_firsttoken(self, ask: asks.FirstToken) -> asks.Timed:
        """A prefix is reused as its documentation shows: by a copy of the cache that holds it."""
        prefix = self._prompts.make(ask.prefix, "prefix", ask.seed)
        own = self._prompts.make(ask.own, "own", ask.seed)
        if not ask.shared:
            return asks.Timed(self._first(prefix + own, self._dynamic()), ask.prefix + ask.own)
        if ask.seed not in self._prefixes:
            self._prefixes = {ask.seed: self._dynamic()}
            self._forward([prefix], self._prefixes[ask.seed])
        began = time.perf_counter()
        self._forward([own], copy.deepcopy(self._prefixes[ask.seed]))
        return asks.Timed(time.perf_counter() - began, ask.prefix + ask.own)

    def _trial(self, batch: int) -> float:
        """Seconds of a step."""
        ask = asks.Decode(
            batch=batch, context=TRIAL_CONTEXT, tokens=TRIAL_TOKENS, most_seconds=TRIAL_SECONDS
        )
        timed = min((self.on_decode(ask) for _ in range(3)), key=lambda it: it.seconds / it.tokens)
        return timed.seconds / timed.tokens * batch

    def _first(self, prompt: list[int], cache: Any) -> float:
        began = time.perf_counter()
        self._forward([prompt], cache)
        return time.perf_counter() - began

    def _load(self, dtype: torch.dtype) -> Any:
        load: Any = transformers.AutoModelForCausalLM.from_pretrained
        model = load(self._ask.folder, dtype=dtype).eval().to(self._ask.device)
        names = inspect.signature(inspect.unwrap(type(model.model).forward)).parameters
        self._keyword = "cache" if "cache" in names else "past_key_values"
        return model

    def _dynamic(self) -> Any:
        make: Any = transformers.DynamicCache
        return make()

    def _fixed(self, context: int) -> Any:
        make: Any = transformers.StaticCache
        return make(config=self._model.config, max_cache_len=context + ROOM)

    def _forward(self, ids: list[list[int]], cache: Any) -> list[list[int]]:
        """The likeliest next token of each row."""
        inputs = torch.tensor(ids, device=self._ask.device)
        made = self._model(inputs, use_cache=True, logits_to_keep=1, **{self._keyword: cache})
        drawn: list[list[int]] = made.logits[:, -1].argmax(dim=-1, keepdim=True).tolist()
        return drawn

    def _how(self) -> str:
        return (
            f"{self._kind()} cache, eager, torch {torch.__version__}, {self._ask.threads} threads"
        )

    def _kind(self) -> str:
        cache = "static" if self._static else "dynamic"
        return f"{str(self._dtype).removeprefix('torch.')} weights, {cache}"

    def _step_bytes(self) -> int:
        """A tied embedding is one parameter: the head's matrix."""
        return sum(each.numel() * each.element_size() for each in self._model.parameters())

    def _kv_token_bytes(self) -> int:
        config = self._model.config
        width = config.num_key_value_heads * config.head_dim * config.num_hidden_layers
        return 2 * int(width) * self._dtype.itemsize


if __name__ == "__main__":
    with torch.inference_mode():
        play(Transformers)
