"""A model that declares 524,288 positions is served to the last of them."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from engine.config import BLOCK_SIZE, EngineConfig
from engine.core.prefix import chain
from engine.core.request import Request
from engine.errors import RequestError
from engine.planner import rank_memory
from tests.engine.hf_models import write_hf_model
from tests.engine.parity import TOKENS, Engine, random_prompts

CONTEXT = 524_288
WINDOW = 32
LAYERS = 2
ANSWER = 8
TOP = 8
SMALL: dict[str, Any] = {
    "num_hidden_layers": LAYERS,
    "hidden_size": 32,
    "intermediate_size": 32,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": CONTEXT,
}


def start(folder: Path, budget: int) -> Engine:
    torch.set_num_threads(1)
    config = EngineConfig(token_budget=budget, max_batch_size=1, kv_cache_tokens=CONTEXT)
    return Engine(folder, config)


def check_answer(engine: Engine, request: Request, expected: Tensor) -> None:
    """`expected`: logits before each token of the answer, (ANSWER, vocabulary)."""
    logprobs = expected[:, :TOKENS].log_softmax(dim=-1)
    assert request.emitted == logprobs.argmax(dim=-1).tolist()
    reports = [event.logprobs for event in engine.events]
    for report, of_all in zip(reports, logprobs, strict=True):
        assert report is not None
        for token, logprob in report.top:
            assert logprob == pytest.approx(float(of_all[token]), abs=2e-4)


def test_a_sliding_model_reads_a_prompt_that_fills_its_context(tmp_path: Path) -> None:
    model: Any = write_hf_model(tmp_path, "mistral", sliding_window=WINDOW, **SMALL)
    engine = start(tmp_path, budget=4096)
    [prompt] = random_prompts([CONTEXT - ANSWER])
    [request] = engine.greedy([prompt], ANSWER, TOP)
    assert request.finish == "length"
    # What the last tokens depend on: every layer looks one window further back.
    sequence = request.history[:-1]
    tail = sequence[-(LAYERS * WINDOW + ANSWER) :]
    positions = torch.arange(len(sequence) - len(tail), len(sequence)).unsqueeze(0)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([tail]), position_ids=positions).logits[0]
    check_answer(engine, request, logits[-ANSWER:].float())


def test_memory_and_limits_are_counted_to_the_last_token(tmp_path: Path) -> None:
    write_hf_model(tmp_path, "llama", **SMALL)
    engine = start(tmp_path, budget=64)
    assert engine.scheduler.capacity == CONTEXT
    assert engine.scheduler.pool.size * BLOCK_SIZE == CONTEXT
    config, model = engine.local.config, engine.local.checkpoint.config
    assert engine.local.decoder.cache.nbytes == rank_memory(model, config, 0).kv
    with pytest.raises(RequestError, match=f"the limit is {CONTEXT}"):
        engine.greedy([[5] * (CONTEXT - ANSWER + 1)], ANSWER)


CACHED = 32_700
"""Blocks whose keys and values are put into the cache directly."""


def test_full_attention_at_the_end_of_the_context(tmp_path: Path) -> None:
    model: Any = write_hf_model(tmp_path, "llama-tied", **SMALL)
    engine = start(tmp_path, budget=32)
    [prompt] = random_prompts([CACHED * BLOCK_SIZE + 40])
    keys, values = fill(engine, prompt)
    [request] = engine.greedy([prompt], ANSWER, TOP)
    assert request.cached_tokens == CACHED * BLOCK_SIZE
    tail = request.history[CACHED * BLOCK_SIZE : -1]
    check_answer(engine, request, Textbook(model, keys, values).logits(tail)[-ANSWER:].float())


def fill(engine: Engine, prompt: list[int]) -> tuple[Tensor, Tensor]:
    """Random keys and values of the prompt's leading blocks, each (layers, tokens, width), as if
    an earlier request had computed them."""
    pool, cache = engine.scheduler.pool, engine.local.decoder.cache
    blocks = pool.allocate(CACHED)
    for block, name in zip(blocks, chain(b"", prompt, CACHED), strict=True):
        pool.publish(block, name)
    pool.release(blocks)
    generator = torch.Generator().manual_seed(5)
    shape = (LAYERS, CACHED * BLOCK_SIZE, cache.key_dim)
    # Keys so long that a few of the half million get all the weight.
    keys = 6 * torch.randn(shape, generator=generator)
    values = torch.randn(shape, generator=generator)
    slots = torch.tensor(blocks).unsqueeze(1) * BLOCK_SIZE + torch.arange(BLOCK_SIZE)
    for layer in range(LAYERS):
        cache.write(layer, slots.view(-1), keys[layer].unsqueeze(1), values[layer].unsqueeze(1))
    return keys, values


class Textbook:
    """The model in float64, one query after another, after keys and values that are given."""

    def __init__(self, model: Any, keys: Tensor, values: Tensor) -> None:
        self._model = model
        self._keys = keys
        self._values = values

    @torch.inference_mode()
    def logits(self, tokens: list[int]) -> Tensor:
        model, start = self._model.model, self._keys.shape[1]
        positions = torch.arange(start, start + len(tokens)).unsqueeze(0)
        x = model.embed_tokens(torch.tensor(tokens))
        cosine, sine = (angle[0].double() for angle in model.rotary_emb(x, positions))
        x = x.double()
        for index, layer in enumerate(model.layers):
            layer = layer.double()
            normed = layer.input_layernorm(x.float()).double()
            x = x + self._attention(index, layer.self_attn, normed, cosine, sine)
            x = x + layer.mlp(layer.post_attention_layernorm(x.float()).double())
        return torch.nn.functional.linear(
            model.norm(x.float()).double(), model.embed_tokens.weight.double()
        )

    def _attention(self, index: int, part: Any, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        width = self._keys.shape[2]
        start = self._keys.shape[1]
        queries = turn(part.q_proj(x).view(len(x), -1, width), cosine, sine)
        own = turn(part.k_proj(x).view(len(x), 1, width), cosine, sine).squeeze(1)
        keys = torch.cat((self._keys[index].double(), own))
        values = torch.cat((self._values[index].double(), part.v_proj(x)))
        attended = torch.empty_like(queries)
        for place, query in enumerate(queries):
            seen = start + place + 1
            weights = (query @ keys[:seen].T * width**-0.5).softmax(dim=-1)
            attended[place] = weights @ values[:seen]
        mixed: Tensor = part.o_proj(attended.flatten(1))
        return mixed


def turn(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Rotate (tokens, heads, width) by (tokens, width)."""
    first, second = x.chunk(2, dim=-1)
    return x * cosine.unsqueeze(1) + torch.cat((-second, first), dim=-1) * sine.unsqueeze(1)
