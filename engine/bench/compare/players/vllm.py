"""vLLM through its own asynchronous engine, compiled, with prefix caching."""

import itertools
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from engine.bench.compare.players import asks, window
from engine.bench.compare.players.loop import Loop
from engine.bench.compare.players.mix import serve
from engine.bench.compare.players.prompts import Prompts
from engine.bench.compare.players.speech import Player, play

BLOCK = 32
"""Tokens of a block: the least that its CPU kernels are made for, so that most of a prefix counts.
Its default is 128."""
SEATS = 256
WIDTHS = {"float32": 4, "bfloat16": 2, "float16": 2}


class Vllm(Player):
    def __init__(self) -> None:
        self._loop = Loop()
        self._serial = itertools.count()
        self._engine: Any = None

    def on_open(self, ask: asks.Open) -> asks.Opened:
        if ask.device == "cpu":
            # Read when it is imported: two threads on the cores that everybody has.
            cores = sorted(os.sched_getaffinity(0))[: ask.threads]
            os.environ["VLLM_CPU_OMP_THREADS_BIND"] = ",".join(map(str, cores))
        os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
        os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
        self._loop.run(self._start(ask))
        self._loop.run(window.first_token(self._stream, self._prompts.make(16, "open")))
        dtype = self._dtype
        return asks.Opened(
            name=f"vLLM {self._version}",
            how=f"{dtype}, compiled, prefix caching with blocks of {BLOCK}, {ask.threads} threads",
            works=[asks.DECODE, asks.PREFILL, asks.FIRST_TOKEN, asks.SERVE],
            step_bytes=self._parameters * WIDTHS[dtype],
            kv_token_bytes=self._kv_numbers * WIDTHS[dtype],
        )

    def on_decode(self, ask: asks.Decode) -> asks.Timed:
        prompts = [
            self._prompts.make(ask.context, "decode", index, ask.context)
            for index in range(ask.batch)
        ]
        return self._loop.run(self._decode(ask, prompts))

    def on_prefill(self, ask: asks.Prefill) -> asks.Timed:
        prompt = self._prompts.make(ask.tokens, "prefill", ask.seed)
        return asks.Timed(self._first(prompt), ask.tokens)

    def on_firsttoken(self, ask: asks.FirstToken) -> asks.Timed:
        prefix = self._prompts.make(ask.prefix, "prefix", ask.seed)
        if ask.shared:
            self._first(prefix + self._prompts.make(ask.own, "other", ask.seed))
        prompt = prefix + self._prompts.make(ask.own, "own", ask.seed)
        return asks.Timed(self._first(prompt), len(prompt))

    def on_serve(self, ask: asks.Serve) -> asks.Served:
        return self._loop.run(serve(self._stream, self._prompts, ask))

    def close(self) -> None:
        if self._engine is not None:
            self._engine.shutdown()
        self._loop.close()

    def _first(self, prompt: list[int]) -> float:
        return self._loop.run(window.first_token(self._stream, prompt))

    async def _decode(self, ask: asks.Decode, prompts: list[list[int]]) -> asks.Timed:
        """Every prompt is in the cache first, so that all rows begin together."""
        for prompt in prompts:
            await window.first_token(self._stream, prompt)
        return await window.full_batch(self._stream, prompts, ask.tokens, ask.most_seconds)

    async def _start(self, ask: asks.Open) -> None:
        import torch
        import vllm
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.sampling_params import RequestOutputKind
        from vllm.v1.engine.async_llm import AsyncLLM

        self._version, self._module = vllm.__version__, vllm
        self._new_tokens = RequestOutputKind.DELTA
        fast = torch.cpu._is_avx512_bf16_supported() or ask.device != "cpu"
        self._dtype = ask.settings.get("dtype", "bfloat16" if fast else "float32")
        config = _shape(ask.folder)
        self._prompts = Prompts(config["vocab_size"])
        heads = config["num_key_value_heads"] * config["head_dim"]
        self._kv_numbers = 2 * heads * config["num_hidden_layers"]
        self._parameters = _parameters(config)
        arguments = AsyncEngineArgs(
            model=ask.folder,
            dtype=self._dtype,
            max_model_len=ask.longest,
            max_num_seqs=SEATS,
            block_size=BLOCK,
            enable_prefix_caching=True,
            skip_tokenizer_init=True,
            disable_log_stats=True,
            kv_cache_memory_bytes=ask.kv_tokens * self._kv_numbers * WIDTHS[self._dtype],
        )
        self._engine = AsyncLLM.from_engine_args(arguments)

    async def _stream(self, prompt: list[int], tokens: int) -> AsyncIterator[list[int]]:
        sampling = self._module.SamplingParams(
            temperature=0.0,
            max_tokens=tokens,
            ignore_eos=True,
            detokenize=False,
            output_kind=self._new_tokens,
        )
        inputs = {"prompt_token_ids": prompt}
        name = str(next(self._serial))
        async for output in self._engine.generate(inputs, sampling, name):
            new = list(output.outputs[0].token_ids)
            if new:
                yield new


def _shape(folder: str) -> Any:
    return json.loads((Path(folder) / "config.json").read_text())


def _parameters(config: Any) -> int:
    """What a step reads: every layer's matrices and the output head's."""
    hidden, inner, width = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    layer = hidden * width * (2 * heads + 2 * kv_heads) + 3 * hidden * inner
    return int(config["num_hidden_layers"] * layer + config["vocab_size"] * hidden)


if __name__ == "__main__":
    play(Vllm)
