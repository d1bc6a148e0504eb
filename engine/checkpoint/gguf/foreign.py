"""Settings that other decoders have and that change what is computed."""

from engine.checkpoint.declared import Declared
from engine.errors import gettext_noop as _

_NEUTRAL: dict[str, tuple[object, ...]] = {
    "logit_scale": (0.0, 1.0),
    "residual_scale": (0.0, 1.0),
    "embedding_scale": (0.0, 1.0),
    "router_logit_softcapping": (0.0,),
    "use_parallel_residual": (False,),
    "expert_group_scale": (0.0, 1.0),
    "attention.causal": (True,),
    "attention.clamp_kqv": (0.0,),
    "attention.max_alibi_bias": (0.0,),
    "attention.output_scale": (0.0, 1.0),
    "attention.temperature_scale": (0.0, 1.0),
    "attention.temperature_length": (0,),
    "rope.dimension_sections": (),
    "rope.dimension_count_swa": (),
    "attention.key_length_swa": (),
    "attention.value_length_swa": (),
}
"""Values that change nothing."""


def refuse_foreign(declared: Declared, prefix: str) -> None:
    """Raise CheckpointError for a setting that this engine does not compute."""
    for name, neutral in _NEUTRAL.items():
        key = f"{prefix}.{name}"
        value = declared.get(key)
        if value is not None and value not in neutral:
            raise declared.refuse(_("%(key)s is set, which this engine does not compute"), key=key)
