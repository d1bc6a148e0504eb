"""SentencePiece's BPE, as GGUF stores it under the name `llama` (Gemma, Llama 2, Mistral).

No list of merges is stored: any two neighbours whose text together is a token may merge, the token
with the highest score first. Spaces are written `▁`, characters that the vocabulary lacks as bytes.
"""

from collections.abc import Sequence

from tokenizers import Tokenizer, normalizers

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.text.alphabet import metaspace_bytes
from engine.text.vocabulary import BYTE, NORMAL, USER_DEFINED, MergedWords, build_merges, of_kind

SPACE = "▁"


class SentencePieces:
    """A vocabulary of pieces of text with a byte for whatever has no piece."""

    def __init__(self, metadata: TokenizerMetadata) -> None:
        if len(metadata.scores) != len(metadata.tokens):
            raise CheckpointError(
                _("The tokenizer has %(tokens)s tokens but %(scores)s scores."),
                tokens=len(metadata.tokens),
                scores=len(metadata.scores),
            )
        if metadata.token_types.count(BYTE) != 256:
            raise CheckpointError(_("The tokenizer does not have one token for each byte."))
        self.leading_space = metadata.add_space_prefix
        self._metadata = metadata
        defined = of_kind(metadata, USER_DEFINED)
        self._words = MergedWords(
            _build(metadata),
            {token.replace(SPACE, " "): index for token, index in defined.items()},
        )

    def encode(self, text: str, *, first: bool) -> list[int]:
        """As the reference does, the space also goes before a text behind a control token."""
        spaced = text.replace(SPACE, " ")
        return self._words.encode(f" {spaced}" if spaced and self.leading_space else spaced)

    def spell(self, index: int) -> bytes:
        is_byte = self._metadata.token_types[index] == BYTE
        return metaspace_bytes(self._metadata.tokens[index], may_be_byte=is_byte)


def _build(metadata: TokenizerMetadata) -> Tokenizer:
    vocabulary = {token: index for index, token in enumerate(metadata.tokens)}
    merges = _merges(metadata, vocabulary)
    tokenizer = build_merges(vocabulary, merges, byte_fallback=True)
    tokenizer.normalizer = normalizers.Replace(" ", SPACE)
    return tokenizer


def _merges(metadata: TokenizerMetadata, vocabulary: dict[str, int]) -> Sequence[tuple[str, str]]:
    """All pairs of tokens that make a token, best first; half a million for Gemma's 262,144."""
    scores, kinds = metadata.scores, metadata.token_types
    pieces = [index for index, kind in enumerate(kinds) if kind == NORMAL]
    pieces.sort(key=scores.__getitem__, reverse=True)
    tokens = [metadata.tokens[index] for index in pieces]
    return [
        (left, right)
        for token in tokens
        for cut in range(1, len(token))
        if (right := token[cut:]) in vocabulary and (left := token[:cut]) in vocabulary
    ]
