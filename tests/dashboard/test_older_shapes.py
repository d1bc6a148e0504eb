"""A catalogue written by the first release is read by this one."""

from importlib import import_module

import pytest
from django.apps import apps

from dashboard.models import Model
from engine.model_config import Rope

migration = import_module("dashboard.migrations.0002_engine_choices")


@pytest.mark.django_db
def test_a_rotary_base_alone_becomes_a_part_of_its_own() -> None:
    shape = {
        "architecture": "llama",
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_layers": 30,
        "num_heads": 9,
        "num_kv_heads": 3,
        "head_dim": 64,
        "vocab_size": 49152,
        "context_length": 8192,
        "rope_theta": 100000.0,
        "rms_norm_eps": 1e-5,
        "tie_embeddings": True,
    }
    Model.objects.create(name="old", path="/x", size_bytes=1, parameters=1, config=shape)
    migration.nest_rope(apps, None)
    assert Model.objects.get().shape.rope == Rope(theta=100000.0, dimensions=64)
    migration.nest_rope(apps, None)
