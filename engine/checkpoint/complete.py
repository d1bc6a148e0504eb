"""A checkpoint holds exactly the tensors its model needs, in the right shapes."""

from collections.abc import Callable, Mapping

from engine.checkpoint.stored import Stored
from engine.checkpoint.tensors import expected_shapes, missing_layer
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.model_config import ModelConfig

MAX_TENSORS = 500_000
"""Of a model, each expert's counted by themselves."""


def check_heads(name: str, config: ModelConfig) -> None:
    if config.num_heads % config.num_kv_heads:
        raise CheckpointError(
            _("%(file)s: %(num_heads)s heads cannot share %(num_kv_heads)s KV heads evenly."),
            file=name,
            num_heads=config.num_heads,
            num_kv_heads=config.num_kv_heads,
        )


def check_tensors(
    name: str,
    config: ModelConfig,
    tensors: Mapping[str, Stored],
    spoken: Callable[[str], str] = str,
) -> None:
    """`spoken` gives the name by which the file itself knows a tensor, for messages."""
    check_count(name, config, tensors)
    expected = expected_shapes(config)
    for tensor, shape in expected.items():
        if tensor not in tensors:
            raise CheckpointError(
                _("%(file)s: tensor %(tensor)r is missing."), file=name, tensor=spoken(tensor)
            )
        if tensors[tensor].shape != shape:
            raise CheckpointError(
                _(
                    "%(file)s: tensor %(tensor)r has shape %(shape)s, but this model needs "
                    "%(wanted)s."
                ),
                file=tensors[tensor].path.name,
                tensor=spoken(tensor),
                shape=str(list(tensors[tensor].shape)),
                wanted=str(list(shape)),
            )
    for tensor, stored in tensors.items():
        if tensor not in expected:
            raise foreign(stored.path.name, spoken(tensor), config)


def foreign(name: str, tensor: str, config: ModelConfig) -> CheckpointError:
    return CheckpointError(
        _(
            "%(file)s: tensor %(tensor)r is not part of a %(architecture)s model as this "
            "engine computes it; running without it would give wrong answers."
        ),
        file=name,
        tensor=tensor,
        architecture=config.architecture,
    )


def check_count(name: str, config: ModelConfig, tensors: Mapping[str, Stored]) -> None:
    """A declared size far beyond the file's tensors must not build a table of that size."""
    if config.num_layers > len(tensors):
        layer = missing_layer(config, tensors)
        raise CheckpointError(
            _(
                "%(file)s: %(num_layers)s layers are declared but the file holds only "
                "%(count)s tensors; layer %(missing)s is missing."
            ),
            file=name,
            num_layers=config.num_layers,
            count=len(tensors),
            missing=layer or 0,
        )
    experts = config.experts.count if config.experts else 0
    if config.num_layers * (20 + 3 * experts) > MAX_TENSORS:
        raise CheckpointError(
            _("%(file)s: %(layers)s layers with %(experts)s experts each cannot be real."),
            file=name,
            layers=config.num_layers,
            experts=experts,
        )
