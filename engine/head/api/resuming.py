"""An answer that began at another head, as a gateway hands it over."""

from collections.abc import Sequence

import msgspec

from engine.errors import RequestError
from engine.head.api.origin import Origin
from engine.head.api.requests import Asked, CompletionAsked
from engine.head.begun import Begun
from engine.text.chat import ChatEncoder
from engine.text.tokenizer import TextTokenizer


class Spoken(msgspec.Struct, frozen=True):
    """What a caller has of one answer, as text."""

    content: str = ""
    reasoning: str = ""


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """The body of `POST /resume`. Lists go by answer."""

    path: str
    """Where the request was sent first."""
    request: msgspec.Raw
    origin: Origin
    emitted: list[list[int]] = []
    sent: list[int] = []
    """Chunks that the caller has."""
    cached: list[int | None] = []
    texts: list[Spoken | None] = []
    """For a model of another vocabulary; None where a text does not say all, as with tool calls."""
    ended: list[bool] = []
    """Whether the caller has its end."""


def read_resumption(payload: bytes) -> Resumption:
    """Raises RequestError for anything else."""
    try:
        return msgspec.json.decode(payload, type=Resumption)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise RequestError(f"This is no answer that could be continued: {error}") from error


class Translator:
    """Answers so far, in the tokens of this model."""

    def __init__(self, tokenizer: TextTokenizer, chat: ChatEncoder, vocabulary: str) -> None:
        self._tokenizer = tokenizer
        self._chat = chat
        self._vocabulary = vocabulary

    def begun(self, resumed: Resumption, asked: Asked, *, thinking: bool) -> list[Begun]:
        """Raises RequestError (409) for what only the model that began it could continue."""
        told = [count > 0 for count in resumed.sent]
        if resumed.origin.vocabulary != self._vocabulary:
            return [
                Begun(tokens=self._spelled(spoken, asked, index, thinking), ended=ended, told=sent)
                for index, (spoken, ended, sent) in enumerate(
                    zip(resumed.texts, resumed.ended, told, strict=False)
                )
            ]
        for tokens in resumed.emitted:
            self._tokenizer.check_ids(tokens, "emitted")
        return [
            Begun(tokens=tokens, cached_tokens=cached, told=sent)
            for tokens, cached, sent in zip(resumed.emitted, resumed.cached, told, strict=False)
        ]

    def _spelled(
        self, spoken: Spoken | None, asked: Asked, index: int, thinking: bool
    ) -> list[int]:
        """A text so far, in this model's tokens."""
        if spoken is None:
            raise _stranded()
        if isinstance(asked, CompletionAsked):
            return self._encoded(_unechoed(spoken.content, asked, index))
        return self._thoughts(spoken, thinking) + self._encoded(spoken.content)

    def _thoughts(self, spoken: Spoken, thinking: bool) -> list[int]:
        """Its reasoning, as far as it went; none where this model does not reason."""
        tags = self._chat.tags
        if tags is None or not (spoken.reasoning or thinking):
            return []
        tokens = [] if thinking else self._tokenizer.encode_trusted(tags.open)
        if spoken.reasoning:
            tokens += self._encoded(f"\n{spoken.reasoning}")
        if spoken.content:
            tokens += self._encoded("\n") + self._tokenizer.encode_trusted(tags.close)
            tokens += self._encoded("\n\n")
        return tokens

    def _encoded(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, first=False) if text else []


def _unechoed(content: str, asked: CompletionAsked, index: int) -> str:
    prompt = asked.prompts[index // asked.wanted.n]
    if not isinstance(prompt, str):
        raise _stranded()
    return content.removeprefix(prompt) if asked.echo else content


def _stranded() -> RequestError:
    return RequestError(
        "Another model cannot go on with this answer.", code="not_portable", status=409
    )


def rebased(origin: Origin, sent: Sequence[int], told: Sequence[int], vocabulary: str) -> Origin:
    """The origin for a head of another vocabulary, where what was sent takes other chunks.

    `told`: by answer, the chunks that its beginning makes here.
    """
    pairs = zip(sent, told, strict=False)
    base = tuple(count - here if count else 0 for count, here in pairs)
    return msgspec.structs.replace(origin, vocabulary=vocabulary, base=base)
