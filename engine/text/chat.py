"""Messages to prompt ids.

Two rules a caller may rely on:

- What people write is only ever text. A control token spelled out inside a message reaches the
  model as its letters, so no message can pretend to be another role.
- The template's header for a new answer is always added, also after a final assistant message,
  which counts as a finished turn. Only `continue_final` leaves that message open and goes on.
"""

import secrets
from collections.abc import Sequence

from engine.errors import RequestError
from engine.text.template import ChatTemplate, Message
from engine.text.tokenizer import TextTokenizer


class ChatEncoder:
    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Raises CheckpointError when the model's template cannot be compiled."""
        self._tokenizer = tokenizer
        metadata = tokenizer.metadata
        self._template = None
        if metadata.chat_template is not None:
            self._template = ChatTemplate(
                metadata.chat_template,
                bos_token=self._text_of(metadata.bos_id),
                eos_token=self._text_of(metadata.eos_id),
            )

    def encode(self, messages: Sequence[Message], *, continue_final: bool = False) -> list[int]:
        """Prompt ids; raises RequestError for messages the template refuses."""
        if self._template is None:
            raise RequestError(
                "This model has no chat template; use /v1/completions.", param="messages"
            )
        if continue_final and messages[-1]["role"] != "assistant":
            raise RequestError(
                "continue_final_message needs a last message of the assistant.",
                param="continue_final_message",
            )
        mark = _Mark(self._tokenizer)
        marked = [{key: mark.put(value) for key, value in m.items()} for m in messages]
        text = self._template.render(marked, add_generation_prompt=not continue_final)
        if continue_final:
            text = _cut_after(text, marked[-1]["content"])
        return self._ids(text, mark)

    def _ids(self, text: str, mark: "_Mark") -> list[int]:
        ids: list[int] = []
        for piece in filter(None, self._tokenizer.split_control(text)):
            control = self._tokenizer.control.get(piece)
            ids += self._tokenizer.encode(mark.remove(piece)) if control is None else [control]
        return ids

    def _text_of(self, token: int | None) -> str:
        return "" if token is None else self._tokenizer.metadata.tokens[token]


class _Mark:
    """Breaks control tokens inside messages by a mark nobody can guess, and takes it out again."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._mark = f"\ufdd0{secrets.token_hex(8)}\ufdd1"

    def put(self, text: str) -> str:
        pieces = self._tokenizer.split_control(text)
        pieces[1::2] = [piece[0] + self._mark + piece[1:] for piece in pieces[1::2]]
        return "".join(pieces)

    def remove(self, text: str) -> str:
        return text.replace(self._mark, "")


def _cut_after(text: str, content: str) -> str:
    """The prompt up to the end of the last message's content, trimmed if the template trims."""
    for candidate in (content, content.strip()):
        at = text.rfind(candidate)
        if candidate and at >= 0:
            return text[: at + len(candidate)]
    raise RequestError(
        "The model's chat template does not show the last message, so it cannot be continued.",
        param="continue_final_message",
    )
