"""What a rank's card says it holds."""

import msgspec
from django.template.loader import render_to_string
from django.utils.translation import override

from dashboard.views.plan import Cell
from engine.config import ParallelPlan
from engine.model_config import LatentAttention, ModelConfig
from engine.shards import rank_share
from tests.shapes import SMOLLM2

LATENT = LatentAttention(q_rank=None, kv_rank=128, nope_dim=32, rope_dim=32, value_dim=32)


def card(model: ModelConfig, language: str = "en") -> str:
    cell = Cell(rank_share(model, ParallelPlan(tp=2), 0), model, None)
    with override(language):
        text = render_to_string("deployments/_rank.html", {"cell": cell, "rank": None})
    return " ".join(text.split())


def test_kv_heads_are_counted() -> None:
    text = card(SMOLLM2)
    assert "<dt>KV heads</dt><dd>2 of 3</dd>" in text
    assert "Query heads" not in text


def test_a_latent_is_no_kv_head() -> None:
    model = msgspec.structs.replace(SMOLLM2, num_heads=16, num_kv_heads=16, latent=LATENT)
    text = card(model)
    assert "KV heads" not in text
    assert "<dt>KV latent</dt><dd>whole</dd>" in text
    assert "<dt>Query heads</dt><dd>8 of 16</dd>" in text
    assert text.count('class="held"') == 8
    assert "<dt>KV 潜向量</dt><dd>完整</dd>" in card(model, "zh-hans")
