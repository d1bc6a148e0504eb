"""What a checkpoint says about its tokenizer."""

from collections.abc import Mapping

import msgspec

from engine.errors import CheckpointError
from engine.errors import gettext_noop as _


class TokenizerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """As stored in the file; ids are None where the file names none."""

    model: str
    """`gpt2` is byte-level BPE, `llama` is SentencePiece."""
    pre: str
    """Name of the pre-tokenisation rules, `default` when the file names none."""
    tokens: list[str]
    token_types: list[int]
    """1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte."""
    merges: list[str]
    scores: list[float] = []
    """SentencePiece: of two merges the one whose token scores higher comes first."""
    bos_id: int | None
    eos_id: int | None
    eot_id: int | None
    unknown_id: int | None
    padding_id: int | None
    add_bos: bool
    add_space_prefix: bool
    chat_template: str | None
    eos_ids: list[int] = []
    """Every id that ends an answer besides eos_id and eot_id, e.g. from generation_config.json."""
    tokenizer_json: str | None = None
    """Text of a tokenizer.json, which then says how text becomes tokens; `model` is `json`, `pre`
    is `json`, merges are empty, and tokens and token_types are filled from it."""


def read_tokenizer(name: str, metadata: Mapping[str, object]) -> TokenizerMetadata:
    """Raises CheckpointError when a value has the wrong type or an id is not in the vocabulary."""
    prefix = "tokenizer.ggml."
    tokens = metadata[f"{prefix}tokens"]
    count = len(tokens) if isinstance(tokens, list) else 0
    fields = {
        "model": metadata.get(f"{prefix}model"),
        "pre": metadata.get(f"{prefix}pre", "default"),
        "tokens": tokens,
        "token_types": metadata.get(f"{prefix}token_type", [1] * count),
        "merges": metadata.get(f"{prefix}merges", []),
        "scores": metadata.get(f"{prefix}scores", []),
        "bos_id": metadata.get(f"{prefix}bos_token_id"),
        "eos_id": metadata.get(f"{prefix}eos_token_id"),
        "eot_id": metadata.get(f"{prefix}eot_token_id"),
        "unknown_id": metadata.get(f"{prefix}unknown_token_id"),
        "padding_id": metadata.get(f"{prefix}padding_token_id"),
        "add_bos": metadata.get(f"{prefix}add_bos_token", False),
        "add_space_prefix": metadata.get(f"{prefix}add_space_prefix", False),
        "chat_template": metadata.get("tokenizer.chat_template"),
    }
    try:
        result = msgspec.convert(fields, TokenizerMetadata)
    except msgspec.ValidationError as error:
        raise CheckpointError(
            _("%(file)s: the tokenizer's metadata is damaged: %(error)s."),
            file=name,
            error=str(error),
        ) from error
    check_tokenizer(name, result)
    return result


def check_tokenizer(name: str, tokenizer: TokenizerMetadata) -> None:
    """One type a token, and every special id in the vocabulary."""
    count = len(tokenizer.tokens)
    if len(tokenizer.token_types) != count:
        raise CheckpointError(
            _("%(file)s: %(count)s tokens but %(types)s token types."),
            file=name,
            count=count,
            types=len(tokenizer.token_types),
        )
    ids = [
        (key, getattr(tokenizer, key))
        for key in ("bos_id", "eos_id", "eot_id", "unknown_id", "padding_id")
    ]
    for key, token in [*ids, *(("eos_ids", token) for token in tokenizer.eos_ids)]:
        if token is not None and not 0 <= token < count:
            raise CheckpointError(
                _("%(file)s: %(key)s %(token)s is not one of the %(count)s tokens."),
                file=name,
                key=key,
                token=token,
                count=count,
            )
