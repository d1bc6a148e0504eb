"""What each supported architecture must declare and contain."""

from collections.abc import Mapping

from engine.checkpoint.header import ArrayPlace, Header, Scalar, TensorInfo
from engine.checkpoint.tensors import EMBEDDING, HEAD, expected_shapes, missing_layer
from engine.errors import CheckpointError, Said, said
from engine.errors import gettext_noop as _
from engine.model_config import ModelConfig, Rope

SUPPORTED_ARCHITECTURES = ("llama",)


class Declared:
    """Typed look-ups in the metadata; each failure names the file and the key."""

    def __init__(self, name: str, values: Mapping[str, Scalar | ArrayPlace]) -> None:
        self.name = name
        self.values = values

    def text(self, key: str, default: str | None = None) -> str:
        value = self.values.get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, said(_("a text")))
        return value

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**31:
            raise self._wrong(key, value, said(_("a positive integer")))
        return value

    def number(self, key: str, default: float | None = None) -> float:
        value = self.values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
            raise self._wrong(key, value, said(_("a positive number")))
        return float(value)

    def _wrong(self, key: str, value: object, wanted: Said) -> CheckpointError:
        if value is None:
            return CheckpointError(
                _("%(file)s: metadata %(key)r is missing."), file=self.name, key=key
            )
        found = said(_("an array")) if isinstance(value, ArrayPlace) else repr(value)
        return CheckpointError(
            _("%(file)s: metadata %(key)r should be %(wanted)s, not %(found)s."),
            file=self.name,
            key=key,
            wanted=wanted,
            found=found,
        )


def read_config(name: str, header: Header) -> ModelConfig:
    """The decoder's shape; refuses what the engine would compute wrongly."""
    declared = Declared(name, header.values)
    architecture = declared.text("general.architecture")
    if architecture not in SUPPORTED_ARCHITECTURES:
        raise CheckpointError(
            _(
                "%(file)s: architecture %(architecture)r is not supported; supported: "
                "%(supported)s."
            ),
            file=name,
            architecture=architecture,
            supported=", ".join(SUPPORTED_ARCHITECTURES),
        )
    prefix = architecture
    heads = declared.integer(f"{prefix}.attention.head_count")
    hidden = declared.integer(f"{prefix}.embedding_length")
    head_dim = declared.integer(f"{prefix}.attention.key_length", hidden // heads or None)
    config = ModelConfig(
        architecture=architecture,
        hidden_size=hidden,
        intermediate_size=declared.integer(f"{prefix}.feed_forward_length"),
        num_layers=declared.integer(f"{prefix}.block_count"),
        num_heads=heads,
        num_kv_heads=declared.integer(f"{prefix}.attention.head_count_kv", heads),
        head_dim=head_dim,
        vocab_size=_vocabulary(name, header),
        context_length=declared.integer(f"{prefix}.context_length"),
        rope=Rope(theta=declared.number(f"{prefix}.rope.freq_base", 10_000.0), dimensions=head_dim),
        rms_norm_eps=declared.number(f"{prefix}.attention.layer_norm_rms_epsilon"),
        tie_embeddings=HEAD not in header.tensors,
    )
    _refuse_unsupported(declared, prefix, config)
    return config


def check_tensors(name: str, config: ModelConfig, tensors: Mapping[str, TensorInfo]) -> None:
    """The file holds exactly the tensors its architecture needs, in the right shapes."""
    # A declared layer count far beyond the file's tensors must not build a table of that size.
    if config.num_layers > len(tensors):
        _find_missing_layer(name, config, tensors)
    expected = expected_shapes(config)
    for tensor, shape in expected.items():
        if tensor not in tensors:
            raise CheckpointError(
                _("%(file)s: tensor %(tensor)r is missing."), file=name, tensor=tensor
            )
        if tensors[tensor].shape != shape:
            raise CheckpointError(
                _(
                    "%(file)s: tensor %(tensor)r has shape %(shape)s, but this model needs "
                    "%(wanted)s."
                ),
                file=name,
                tensor=tensor,
                shape=str(list(tensors[tensor].shape)),
                wanted=str(list(shape)),
            )
    for tensor in tensors:
        if tensor not in expected:
            raise CheckpointError(
                _(
                    "%(file)s: tensor %(tensor)r is not part of a %(architecture)s model as this "
                    "engine computes it; running without it would give wrong answers."
                ),
                file=name,
                tensor=tensor,
                architecture=config.architecture,
            )


def _find_missing_layer(name: str, config: ModelConfig, tensors: Mapping[str, TensorInfo]) -> None:
    layer = missing_layer(config, tensors)
    if layer is not None:
        raise CheckpointError(
            _(
                "%(file)s: %(num_layers)s layers are declared but the file holds only "
                "%(count)s tensors; layer %(missing)s is missing."
            ),
            file=name,
            num_layers=config.num_layers,
            count=len(tensors),
            missing=layer,
        )


def _vocabulary(name: str, header: Header) -> int:
    """Rows of the embedding; the tokenizer may know fewer tokens, never more."""
    embedding = header.tensors.get(EMBEDDING)
    if embedding is None:
        raise CheckpointError(
            _("%(file)s: tensor %(tensor)r is missing."), file=name, tensor=EMBEDDING
        )
    rows = embedding.shape[0]
    tokens = header.values.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, ArrayPlace) or not tokens.count:
        raise CheckpointError(_("%(file)s: the tokenizer's vocabulary is missing."), file=name)
    if tokens.count > rows:
        raise CheckpointError(
            _("%(file)s: the tokenizer has %(count)s tokens but the embedding only %(rows)s rows."),
            file=name,
            count=tokens.count,
            rows=rows,
        )
    return rows


def _refuse_unsupported(declared: Declared, prefix: str, config: ModelConfig) -> None:
    name, values = declared.name, declared.values
    scaling = declared.text(f"{prefix}.rope.scaling.type", "none")
    if scaling != "none":
        raise CheckpointError(
            _("%(file)s: rotary scaling of type %(scaling)r is not supported."),
            file=name,
            scaling=scaling,
        )
    if values.get(f"{prefix}.rope.scale_linear", 1.0) != 1.0:
        raise CheckpointError(
            _("%(file)s: linearly scaled rotary positions are not supported."), file=name
        )
    rotated = declared.integer(f"{prefix}.rope.dimension_count", config.head_dim)
    if rotated != config.head_dim or rotated % 2:
        raise CheckpointError(
            _(
                "%(file)s: rotary positions over %(rotated)s of %(head_dim)s dimensions are not "
                "supported."
            ),
            file=name,
            rotated=rotated,
            head_dim=config.head_dim,
        )
    if values.get(f"{prefix}.expert_count", 0) != 0:
        raise CheckpointError(
            _("%(file)s: mixture-of-experts models are not supported yet."), file=name
        )
    if values.get(f"{prefix}.attention.value_length", config.head_dim) != config.head_dim:
        raise CheckpointError(
            _("%(file)s: values and keys of different width are not supported."), file=name
        )
    if config.num_heads % config.num_kv_heads:
        raise CheckpointError(
            _("%(file)s: %(num_heads)s heads cannot share %(num_kv_heads)s KV heads evenly."),
            file=name,
            num_heads=config.num_heads,
            num_kv_heads=config.num_kv_heads,
        )
