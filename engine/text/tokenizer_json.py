"""A Hugging Face tokenizer.json, followed by the library that defines the format."""

import secrets
from collections.abc import Iterator
from typing import Literal

import msgspec
from tokenizers import AddedToken, Tokenizer

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.text.alphabet import metaspace_bytes, spelled_bytes
from engine.text.vocabulary import USER_DEFINED

_PANIC = "PanicException"
"""What a Rust library raises when it breaks: no Exception, and nowhere to import from."""
_TRIAL = "Some rules fail only when used: 12 \n\t 你好"


class _Decoder(msgspec.Struct):
    """One step from tokens to text, or a sequence of them."""

    type: str
    decoders: list["_Decoder"] = []
    prepend_scheme: str = "always"

    def steps(self) -> Iterator["_Decoder"]:
        if self.type != "Sequence":
            yield self
        for decoder in self.decoders:
            yield from decoder.steps()


class _Model(msgspec.Struct):
    type: Literal["BPE"] = "BPE"


class _Added(msgspec.Struct):
    id: int
    content: str
    special: bool = False


class _Outline(msgspec.Struct):
    """What the engine itself has to know of the file."""

    model: _Model
    decoder: _Decoder
    added_tokens: list[_Added] = []


class JsonVocabulary:
    """Text becomes exactly the ids that the library makes of it, but for control tokens in it."""

    def __init__(self, metadata: TokenizerMetadata) -> None:
        text = metadata.tokenizer_json or ""
        outline = _outline(text)
        _check_added(outline.added_tokens, len(metadata.tokens))
        steps = {step.type: step for step in outline.decoder.steps()}
        self._metadata = metadata
        self._byte_level = "ByteLevel" in steps
        self._byte_fallback = "ByteFallback" in steps
        if not steps.keys() & {"ByteLevel", "Metaspace", "Replace", "ByteFallback"}:
            raise CheckpointError(
                _("tokenizer.json decodes by %(decoders)s, which is not supported."),
                decoders=", ".join(steps) or "nothing",
            )
        metaspace = steps.get("Metaspace")
        self.leading_space = "Strip" in steps or (
            metaspace is not None and metaspace.prepend_scheme != "never"
        )
        self._tokenizer = _load(text)
        # Known only to this process, so nobody can write it.
        self._before = f"\uf8ff{secrets.token_hex(16)}"
        self._tokenizer.add_tokens([AddedToken(self._before, normalized=False)])

    def encode(self, text: str, *, first: bool) -> list[int]:
        if first:
            return self._encode(text)
        # Some vocabularies put a space before the first word of a text alone.
        return self._encode(self._before + text)[1:]

    def spell(self, index: int) -> bytes:
        token = self._metadata.tokens[index]
        if self._metadata.token_types[index] == USER_DEFINED:
            return token.encode()
        if self._byte_level:
            return spelled_bytes(token)
        return metaspace_bytes(token, may_be_byte=self._byte_fallback)

    def _encode(self, text: str) -> list[int]:
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _outline(text: str) -> _Outline:
    try:
        return msgspec.json.decode(text, type=_Outline)
    except (msgspec.DecodeError, RecursionError) as error:
        raise CheckpointError(
            _("tokenizer.json cannot be used: %(error)s."), error=str(error)
        ) from error


def _check_added(tokens: list[_Added], size: int) -> None:
    """A special one without a row in the embedding is never written; any other could be."""
    for token in tokens:
        if token.id >= size and not token.special:
            raise CheckpointError(
                _("tokenizer.json adds %(token)r as %(id)s, but the model has only %(size)s rows."),
                token=token.content[:60],
                id=token.id,
                size=size,
            )


def _load(text: str) -> Tokenizer:
    """The library's tokenizer, without anything that would cut, pad or vary what it encodes."""
    try:
        tokenizer = Tokenizer.from_str(text)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.model.dropout = None
        tokenizer.encode_special_tokens = True
        tokenizer.encode(_TRIAL, add_special_tokens=False)
    except BaseException as error:  # the library raises nothing narrower than Exception
        if not isinstance(error, Exception) and type(error).__name__ != _PANIC:
            raise
        raise CheckpointError(
            _("tokenizer.json cannot be used: %(error)s."), error=str(error)
        ) from error
    return tokenizer
