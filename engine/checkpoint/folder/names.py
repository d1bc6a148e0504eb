"""The engine's tensor names in Hugging Face's words, and back."""

import re

from engine.checkpoint.tensors import EMBEDDING, FINAL_NORM, HEAD
from engine.model_config import ModelConfig

_OUTSIDE = {
    EMBEDDING: "model.embed_tokens.weight",
    FINAL_NORM: "model.norm.weight",
    HEAD: "lm_head.weight",
}
_PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_q_a": "self_attn.q_a_proj",
    "attn_q_a_norm": "self_attn.q_a_layernorm",
    "attn_q_b": "self_attn.q_b_proj",
    "attn_kv_a_mqa": "self_attn.kv_a_proj_with_mqa",
    "attn_kv_a_norm": "self_attn.kv_a_layernorm",
    "attn_kv_b": "self_attn.kv_b_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_shexp": "mlp.shared_experts.gate_proj",
    "ffn_up_shexp": "mlp.shared_experts.up_proj",
    "ffn_down_shexp": "mlp.shared_experts.down_proj",
}
_WITH_POST_NORMS = {
    "ffn_norm": "pre_feedforward_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_MIXTRAL = {"ffn_gate_inp": "block_sparse_moe.gate"}
_PROJECTIONS = {"ffn_gate": "gate_proj", "ffn_up": "up_proj", "ffn_down": "down_proj"}
_MIXTRAL_PROJECTIONS = {"ffn_gate": "w1", "ffn_up": "w3", "ffn_down": "w2"}

_LAYER = re.compile(r"blk\.(?P<layer>\d+)\.(?P<rest>.+)")
_EXPERT = re.compile(r"(?P<part>ffn_(?:gate|up|down))\.(?P<expert>\d+)\.weight")
_PREFIXES = ("model.language_model.", "language_model.model.")
_INVERSE_FREQUENCIES = re.compile(r"model\.layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
_ANY_LAYER = re.compile(r"model\.layers\.(?P<layer>\d+)\.")


class Names:
    """Of one model. `fused` matches stacked experts."""

    def __init__(self, config: ModelConfig) -> None:
        self._mixtral = config.architecture == "mixtral"
        self._parts = _PARTS | (_WITH_POST_NORMS if config.post_norms else {})
        self._parts |= _MIXTRAL if self._mixtral else {}
        self._projections = _MIXTRAL_PROJECTIONS if self._mixtral else _PROJECTIONS
        block = "block_sparse_moe" if self._mixtral else "mlp"
        self._experts = f"{block}.experts"
        self.fused = re.compile(
            rf"model\.layers\.(?P<layer>\d+)\.{block}\.experts\.(?P<part>gate_up|down)_proj"
        )

    def plain(self, stored: str) -> str:
        """Without what a model with an image encoder puts in front of its text decoder, and with
        Mixtral's older word where its experts are stacked under the newer one."""
        name = stored.removeprefix("language_model.")
        for prefix in _PREFIXES:
            if stored.startswith(prefix):
                name = "model." + stored.removeprefix(prefix)
        return name.replace(".mlp.", ".block_sparse_moe.") if self._mixtral else name

    def spoken(self, tensor: str) -> str:
        """What a folder calls the engine's `tensor`."""
        match = _LAYER.fullmatch(tensor)
        if match is None:
            return _OUTSIDE.get(tensor, tensor)
        return f"model.layers.{match['layer']}.{self._in_layer(match['rest'])}"

    def _in_layer(self, rest: str) -> str:
        expert = _EXPERT.fullmatch(rest)
        if expert is not None:
            projection = self._projections[expert["part"]]
            return f"{self._experts}.{expert['expert']}.{projection}.weight"
        if rest == "exp_probs_b.bias":
            return "mlp.gate.e_score_correction_bias"
        part, _dot, kind = rest.rpartition(".")
        return f"{self._parts.get(part, part)}.{kind}"


def is_redundant(name: str, config: ModelConfig, extra_layers: int) -> bool:
    """Stored, but not part of what is computed: a copy of a tied embedding, a buffer that follows
    from the configuration, or layers that only predict further tokens."""
    if name == _OUTSIDE[HEAD]:
        return config.tie_embeddings
    if _INVERSE_FREQUENCIES.fullmatch(name):
        return True
    match = _ANY_LAYER.match(name)
    last = config.num_layers + extra_layers
    return match is not None and config.num_layers <= int(match["layer"]) < last
