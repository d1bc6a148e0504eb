"""Byte-level BPE, as GGUF stores it under the name `gpt2` (Llama 3, Qwen, DeepSeek, SmolLM)."""

from tokenizers import Tokenizer, normalizers

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError
from engine.errors import gettext_noop as _
from engine.text.alphabet import spelled_bytes
from engine.text.pretokenizers import RULES, Rules
from engine.text.vocabulary import USER_DEFINED, MergedWords, build_merges, of_kind


class ByteLevel:
    """A vocabulary that spells every byte, so any text has ids."""

    leading_space = False

    def __init__(self, metadata: TokenizerMetadata) -> None:
        rules = RULES.get(metadata.pre)
        if rules is None:
            raise CheckpointError(
                _("The pre-tokenizer %(pre)r is not supported; known are %(known)s."),
                pre=metadata.pre,
                known=", ".join(sorted(RULES)),
            )
        self._metadata = metadata
        self._words = MergedWords(_build(metadata, rules), of_kind(metadata, USER_DEFINED))

    def encode(self, text: str, *, first: bool) -> list[int]:
        return self._words.encode(text)

    def spell(self, index: int) -> bytes:
        token = self._metadata.tokens[index]
        defined = self._metadata.token_types[index] == USER_DEFINED
        return token.encode() if defined else spelled_bytes(token)


def _build(metadata: TokenizerMetadata, rules: Rules) -> Tokenizer:
    tokenizer = build_merges(
        {token: index for index, token in enumerate(metadata.tokens)},
        [_pair(merge) for merge in metadata.merges],
        whole_words=rules.whole_words,
    )
    if rules.compose:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = rules.pre_tokenizer()
    return tokenizer


def _pair(merge: str) -> tuple[str, str]:
    left, space, right = merge.partition(" ")
    if not space:
        raise CheckpointError(_("The tokenizer's merge %(merge)r is not a pair."), merge=merge)
    return left, right
