"""Text to token ids and back, from a checkpoint's own vocabulary.

Control tokens (`<|im_start|>` and their like) are split off before the vocabulary sees the text,
and only where the caller says so: for `encode(text)` they are plain text, so nobody can write one.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError, RequestError
from engine.errors import gettext_noop as _
from engine.text.alphabet import spelled_bytes

CONTROL, USER_DEFINED = 3, 4

_LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def _gpt2() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)


def _smollm() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), _gpt2()])


def _llama3() -> pre_tokenizers.PreTokenizer:
    split = pre_tokenizers.Split(Regex(_LLAMA3), behavior="isolated")
    whole = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return pre_tokenizers.Sequence([split, whole])


PRE_TOKENIZERS: Mapping[str, Callable[[], pre_tokenizers.PreTokenizer]] = {
    "default": _gpt2,
    "gpt-2": _gpt2,
    "smollm": _smollm,
    "llama-bpe": _llama3,
}
"""By GGUF's name. What splits digits and words must be what the model was trained with."""


class TextTokenizer:
    """Byte-level BPE. Thread-safe; encoding long texts releases the GIL."""

    def __init__(self, metadata: TokenizerMetadata) -> None:
        if metadata.model != "gpt2":
            raise CheckpointError(
                _("The tokenizer model %(model)r is not supported, only byte-level BPE is."),
                model=metadata.model,
            )
        if metadata.pre not in PRE_TOKENIZERS:
            raise CheckpointError(
                _("The pre-tokenizer %(pre)r is not supported; known are %(known)s."),
                pre=metadata.pre,
                known=", ".join(sorted(PRE_TOKENIZERS)),
            )
        self.metadata = metadata
        self.size = len(metadata.tokens)
        self.control = self._of_kind(CONTROL)
        """Text of every control token, by which a template writes it."""
        self._defined = self._of_kind(USER_DEFINED)
        self.stop_ids = frozenset(
            token for token in (metadata.eos_id, metadata.eot_id) if token is not None
        )
        self._control_split = _splitter(self.control)
        self._defined_split = _splitter(self._defined)
        self._bytes: list[bytes | None] = [None] * self.size
        self._bpe = _build(metadata)

    @property
    def bos_ids(self) -> list[int]:
        """What a raw prompt starts with. A chat template writes its own."""
        bos = self.metadata.bos_id
        return [bos] if self.metadata.add_bos and bos is not None else []

    def encode(self, text: str) -> list[int]:
        """Ids of plain text; control tokens in it are only their letters."""
        ids: list[int] = []
        for piece in filter(None, self._defined_split(text)):
            defined = self._defined.get(piece)
            ids += self._encode_words(piece) if defined is None else [defined]
        return ids

    def split_control(self, text: str) -> list[str]:
        """Alternately plain text and the text of one control token."""
        return self._control_split(text)

    def encode_trusted(self, text: str) -> list[int]:
        """Ids of text whose author may write control tokens: a template, or a raw prompt."""
        ids: list[int] = []
        for piece in filter(None, self.split_control(text)):
            control = self.control.get(piece)
            ids += self.encode(piece) if control is None else [control]
        return ids

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to the text: nothing for a control token or an id out of range."""
        if not 0 <= token < self.size:
            return b""
        known = self._bytes[token]
        if known is None:
            known = self._bytes[token] = self._spell(token)
        return known

    def decode(self, tokens: Iterable[int]) -> str:
        return b"".join(map(self.token_bytes, tokens)).decode("utf-8", "replace")

    def check_ids(self, ids: Sequence[int], param: str) -> None:
        """Raise RequestError for an id that is not in the vocabulary."""
        for token in ids:
            if not 0 <= token < self.size:
                raise RequestError(
                    f"{token} is not a token id of this model (0 to {self.size - 1}).", param=param
                )

    def _encode_words(self, text: str) -> list[int]:
        try:
            return list(self._bpe.encode(text, add_special_tokens=False).ids)
        except TypeError as error:
            # A lone surrogate: a str that is no Unicode text.
            raise RequestError("The text is not valid Unicode.", param="prompt") from error

    def _of_kind(self, wanted: int) -> dict[str, int]:
        kinds = self.metadata.token_types
        return {
            token: index
            for index, token in enumerate(self.metadata.tokens)
            if kinds[index] == wanted and token
        }

    def _spell(self, index: int) -> bytes:
        kind, token = self.metadata.token_types[index], self.metadata.tokens[index]
        if kind == CONTROL:
            return b""
        return token.encode() if kind == USER_DEFINED else spelled_bytes(token)


def _splitter(tokens: Iterable[str]) -> Callable[[str], list[str]]:
    """Splits text at these tokens, which stay in the result; longer ones first."""
    longest_first = sorted(tokens, key=len, reverse=True)
    if not longest_first:
        return lambda text: [text]
    return re.compile("(" + "|".join(map(re.escape, longest_first)) + ")").split


def _build(metadata: TokenizerMetadata) -> Tokenizer:
    vocabulary = {token: index for index, token in enumerate(metadata.tokens)}
    merges: list[tuple[str, str]] = []
    for merge in metadata.merges:
        left, space, right = merge.partition(" ")
        if not space:
            raise CheckpointError(_("The tokenizer's merge %(merge)r is not a pair."), merge=merge)
        merges.append((left, right))
    ignore_merges = metadata.pre == "llama-bpe"
    try:
        model = models.BPE(vocab=vocabulary, merges=merges, ignore_merges=ignore_merges)
    except Exception as error:  # the library raises nothing narrower
        raise CheckpointError(
            _("The tokenizer's merges do not fit its tokens: %(error)s."), error=str(error)
        ) from error
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[metadata.pre]()
    return tokenizer
