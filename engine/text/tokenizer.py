"""Text to token ids and back, from a checkpoint's own vocabulary.

Control tokens (`<|im_start|>` and their like) are split off before the vocabulary sees the text,
and only where the caller says so: for `encode(text)` they are plain text, so nobody can write one.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from engine.checkpoint import TokenizerMetadata
from engine.errors import CheckpointError, RequestError
from engine.errors import gettext_noop as _
from engine.text.byte_level import ByteLevel
from engine.text.sentence_pieces import SentencePieces
from engine.text.splitter import Splitter
from engine.text.tokenizer_json import JsonVocabulary
from engine.text.vocabulary import CONTROL, Vocabulary, of_kind

VOCABULARIES: Mapping[str, Callable[[TokenizerMetadata], Vocabulary]] = {
    "gpt2": ByteLevel,
    "llama": SentencePieces,
    "json": JsonVocabulary,
}
"""By the kind that the checkpoint names."""

ENDS_OF_TURN = ("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<end_of_turn>")
"""Control tokens that end an answer even where the checkpoint names only another."""


class TextTokenizer:
    """Thread-safe; encoding long texts releases the GIL."""

    def __init__(self, metadata: TokenizerMetadata) -> None:
        build = VOCABULARIES.get(metadata.model)
        if build is None:
            raise CheckpointError(
                _("The tokenizer model %(model)r is not supported; known are %(known)s."),
                model=metadata.model,
                known=", ".join(sorted(VOCABULARIES)),
            )
        self.metadata = metadata
        self.size = len(metadata.tokens)
        self.control = of_kind(metadata, CONTROL)
        """Id of every control token, by the text with which a template writes it."""
        self.stop_ids = frozenset(self._ends())
        self._control_ids = frozenset(self.control.values())
        self._split_control = Splitter(self.control)
        self._bytes: list[bytes | None] = [None] * self.size
        self._vocabulary = build(metadata)

    @property
    def bos_ids(self) -> list[int]:
        """What a raw prompt starts with. A chat template writes its own."""
        bos = self.metadata.bos_id
        return [bos] if self.metadata.add_bos and bos is not None else []

    def encode(self, text: str, *, first: bool = True) -> list[int]:
        """Ids of plain text; control tokens in it are only their letters.

        `first` is False for text that follows a control token. Raises RequestError for text that
        is not valid Unicode.
        """
        try:
            return self._vocabulary.encode(text, first=first)
        except TypeError as error:
            # A lone surrogate: a str that is no Unicode text.
            raise RequestError("The text is not valid Unicode.", param="prompt") from error

    def split_control(self, text: str) -> list[str]:
        """Alternately plain text and the text of one control token."""
        return self._split_control(text)

    def encode_trusted(self, text: str) -> list[int]:
        """Ids of text whose author may write control tokens: a template, or a raw prompt."""
        ids: list[int] = []
        for piece in filter(None, self.split_control(text)):
            control = self.control.get(piece)
            ids += self.encode(piece, first=not ids) if control is None else [control]
        return ids

    def token_bytes(self, token: int) -> bytes:
        """What a token adds to the text: nothing for a control token or an id out of range."""
        if not 0 <= token < self.size:
            return b""
        known = self._bytes[token]
        if known is None:
            silent = token in self._control_ids
            known = self._bytes[token] = b"" if silent else self._vocabulary.spell(token)
        return known

    def decode(self, tokens: Iterable[int]) -> str:
        """A whole text, without the space that the vocabulary itself puts before a first word."""
        text = b"".join(map(self.token_bytes, tokens)).decode("utf-8", "replace")
        return text.removeprefix(" ") if self._vocabulary.leading_space else text

    def check_ids(self, ids: Sequence[int], param: str) -> None:
        """Raise RequestError for an id that is not in the vocabulary."""
        for token in ids:
            if not 0 <= token < self.size:
                raise RequestError(
                    f"{token} is not a token id of this model (0 to {self.size - 1}).", param=param
                )

    def _ends(self) -> Iterable[int]:
        """Ids that end an answer."""
        named = (self.metadata.eos_id, self.metadata.eot_id, *self.metadata.eos_ids)
        usual = (self.control.get(token) for token in ENDS_OF_TURN)
        return (token for token in (*named, *usual) if token is not None)
