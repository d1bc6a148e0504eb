"""One tiny random model twice: computed by transformers and by the engine.

A new architecture joins the grid with one line in CASES.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from engine.config import BLOCK_SIZE, EngineConfig
from engine.core.request import Event, Request
from engine.core.scheduler import Scheduler
from engine.models import Decoder
from engine.protocol.steps import Sampling
from engine.runner.batch import BatchRow, build_batch
from tests.engine.hf_models import CONTEXT, write_hf_model
from tests.engine.local_runner import LocalRunner
from tests.engine.tiny_model import vocabulary

TOKENS = len(vocabulary())
"""Ids from here on are padding, which the engine never draws."""
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 64,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10_000.0,
    "factor": 4.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10_000.0, "factor": 2.0}


@dataclass(frozen=True)
class Case:
    name: str
    limit: int = CONTEXT
    """Of the deployment, in tokens; beyond CONTEXT dynamic scaling sets in."""
    changes: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    def __str__(self) -> str:
        return self.name


CASES = (
    Case("llama"),
    Case("llama-tied"),
    Case("llama-linear"),
    Case("llama-dynamic", limit=2 * CONTEXT),
    Case("llama-yarn"),
    Case("llama-llama3"),
    Case("llama-longrope"),
    Case("mistral", changes={"rope_parameters": YARN}),
    Case("qwen2", changes={"rope_parameters": LLAMA3}),
    Case("qwen3"),
    Case("gemma3"),
    Case("mixtral", changes={"rope_parameters": LINEAR}),
    Case("qwen3_moe", changes={"rope_parameters": YARN, "moe_intermediate_size": 64}),
    Case("deepseek_v2", changes={"rope_parameters": YARN, "moe_intermediate_size": 64}),
    Case("deepseek_v3", changes={"moe_intermediate_size": 64}),
)


class Reference:
    """What transformers computes. Prompts of different lengths share a batch, padded on the left
    under an attention mask."""

    def __init__(self, model: Any, limit: int) -> None:
        """`model`: of transformers, which is only half typed."""
        self._model = model
        model.generation_config.eos_token_id = None
        _fix_frequencies(model, limit)

    @torch.inference_mode()
    def logits(self, prompts: list[list[int]]) -> list[Tensor]:
        """Of every position of every prompt, each (tokens, vocabulary)."""
        tokens, mask = _padded(prompts)
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)
        out = self._model(input_ids=tokens, attention_mask=mask, position_ids=positions)
        return [row[-len(prompt) :] for row, prompt in zip(out.logits, prompts, strict=True)]

    @torch.inference_mode()
    def greedy(self, prompts: list[list[int]], count: int) -> tuple[list[list[int]], list[float]]:
        """`count` tokens after each prompt, and how far the closest second choice was away."""
        tokens, mask = _padded(prompts)
        out = self._model.generate(
            tokens,
            attention_mask=mask,
            do_sample=False,
            max_new_tokens=count,
            pad_token_id=0,
            suppress_tokens=list(range(TOKENS, self._model.config.vocab_size)),
            output_scores=True,
            return_dict_in_generate=True,
        )
        best = torch.stack(out.scores).topk(2, dim=-1).values
        margins = (best[..., 0] - best[..., 1]).amin(dim=0)
        return out.sequences[:, tokens.shape[1] :].tolist(), margins.tolist()


def _padded(prompts: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, prompts))
    tokens = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    return tokens, mask


def _fix_frequencies(model: Any, limit: int) -> None:
    """Take a context limit for the running length, as the engine does (see `Rope`)."""
    for module in model.modules():
        kind = getattr(module, "rope_type", None)
        if kind in ("dynamic", "longrope"):
            frequencies, _ = ROPE_INIT_FUNCTIONS[kind](model.config, None, seq_len=limit)
            module.register_buffer("inv_freq", frequencies)
            module.rope_type = "fixed"


def all_logits(decoder: Decoder, prompts: list[list[int]]) -> list[Tensor]:
    """The engine's, of every position of every prompt, all computed in one step. Empty on ranks
    that have none."""
    rows: list[BatchRow] = []
    free = iter(range(decoder.cache.num_blocks))
    for prompt in prompts:
        blocks = [next(free) for _ in range(-(-len(prompt) // BLOCK_SIZE))]
        rows.append(BatchRow(prompt, 0, blocks, sample=True))
    batch = build_batch(rows, decoder.reach)
    hidden = decoder.hidden(batch.inputs)
    logits = None if hidden is None else decoder.logits(hidden, torch.arange(len(hidden)))
    if logits is None:
        return []
    starts = zip(batch.firsts, prompts, strict=True)
    return [logits[first : first + len(prompt)] for first, prompt in starts]


class Engine:
    """The real scheduler over a real runner, in one process."""

    def __init__(self, folder: Path, config: EngineConfig) -> None:
        self.local = LocalRunner(folder, config)
        context = self.local.checkpoint.config.context_length
        self.scheduler = Scheduler(config, context, epoch=self.local.epoch)
        self.events: list[Event] = []
        self._count = 0

    def greedy(self, prompts: Iterable[list[int]], count: int, top: int = 0) -> list[Request]:
        """Run all of these together to their ends, and report each token's `top` likeliest."""
        requests = [self._request(prompt, count, top) for prompt in prompts]
        for request in requests:
            self.scheduler.add(request)
        while self.scheduler.running or self.scheduler.waiting:
            step = self.scheduler.schedule(0.0)
            assert step is not None
            self.events += self.scheduler.apply(self.local.run(step), 0.0)
        self.scheduler.audit()
        return requests

    def _request(self, prompt: list[int], count: int, top: int) -> Request:
        self._count += 1
        return Request(
            id=str(self._count),
            prompt=prompt,
            max_tokens=count,
            sampling=Sampling(temperature=0.0, logprobs=top or None),
        )


def write_case(folder: Path, case: Case) -> Reference:
    model = write_hf_model(folder, case.name, seed=case.seed, **case.changes)
    return Reference(model, case.limit)


def random_prompts(lengths: Iterable[int], seed: int = 0) -> list[list[int]]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, TOKENS, (length,), generator=generator).tolist() for length in lengths]
