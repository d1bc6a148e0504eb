"""Messages to prompt ids.

Two rules a caller may rely on:

- What people write is only ever text. A control token spelled out inside a message, a tool or a
  document reaches the model as its letters, so no message can pretend to be another role.
- The template's header for a new answer is always added unless the caller says otherwise, also
  after a final assistant message, which counts as a finished turn. Only `continue_final` leaves
  that message open and goes on.
"""

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from engine.errors import RequestError
from engine.text.reasoning import find_tags
from engine.text.template import ChatTemplate, Message
from engine.text.tokenizer import TextTokenizer
from engine.text.tools import Function, choose_style
from engine.text.tools.teaching import taught


class Chat(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat request wants to have in its prompt."""

    messages: Sequence[Message]
    """Calls of the assistant have their arguments as objects."""
    tools: Sequence[Function] = ()
    documents: Sequence[Any] | None = None
    variables: Mapping[str, Any] = {}
    """Of this model's template, e.g. `enable_thinking`."""
    continue_final: bool = False
    add_generation_prompt: bool = True


class ChatPrompt(msgspec.Struct, frozen=True):
    ids: list[int]
    thinking: bool
    """Whether the answer begins inside a block of reasoning that the prompt opened."""
    silent: bool = False
    """Whether the prompt closed such a block already: this answer has none."""


class ChatEncoder:
    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Raises CheckpointError when the model's template cannot be compiled."""
        self._tokenizer = tokenizer
        metadata = tokenizer.metadata
        source = metadata.chat_template or ""
        self._template = None
        if metadata.chat_template is not None:
            self._template = ChatTemplate(
                source,
                bos_token=self._text_of(metadata.bos_id),
                eos_token=self._text_of(metadata.eos_id),
            )
        vocabulary = frozenset(metadata.tokens)
        self.knows_tools = self._template is not None and "tools" in self._template.variables
        """Whether the template takes tools; otherwise they are taught in Hermes' words."""
        self.style = choose_style(source, vocabulary if self.knows_tools else ())
        self.tags = find_tags(source, vocabulary)

    def encode(self, messages: Sequence[Message], *, continue_final: bool = False) -> list[int]:
        """Prompt ids; raises RequestError for messages the template refuses."""
        return self.prepare(Chat(messages=messages, continue_final=continue_final)).ids

    def prepare(self, chat: Chat) -> ChatPrompt:
        """The prompt and how its answer begins; raises RequestError like `encode`."""
        if self._template is None:
            raise RequestError(
                "This model has no chat template; use /v1/completions.",
                param="messages",
                code="no_chat_template",
            )
        if chat.continue_final and chat.messages[-1]["role"] != "assistant":
            raise RequestError(
                "continue_final_message needs a last message of the assistant.",
                param="continue_final_message",
            )
        mark = _Mark(self._tokenizer)
        messages = mark.put(self._messages(chat))
        tools = [tool.declared for tool in chat.tools] if self.knows_tools else []
        text = self._template.render(
            messages,
            add_generation_prompt=chat.add_generation_prompt and not chat.continue_final,
            tools=mark.put(tools) or None,
            documents=mark.put(chat.documents),
            extra=mark.put(chat.variables),
        )
        if chat.continue_final:
            text = _cut_after(text, messages[-1]["content"])
        return ChatPrompt(self._ids(text, mark), *self._thinking(text, chat))

    def _messages(self, chat: Chat) -> Sequence[Message]:
        if not self.knows_tools:
            return taught(chat.messages, chat.tools)
        if not self.style.arguments_as_text:
            return chat.messages
        return [_with_texts(message) for message in chat.messages]

    def _thinking(self, text: str, chat: Chat) -> tuple[bool, bool]:
        """Whether the prompt opened a block of reasoning, and whether it closed one."""
        if self.tags is None:
            return False, True
        end = text.rstrip()
        if chat.continue_final:
            content = chat.messages[-1]["content"]
            opened = content.rfind(self.tags.open) > content.rfind(self.tags.close)
            return opened or end.endswith(self.tags.open), not opened
        return end.endswith(self.tags.open), end.endswith(self.tags.close)

    def _ids(self, text: str, mark: "_Mark") -> list[int]:
        ids: list[int] = []
        for piece in filter(None, self._tokenizer.split_control(text)):
            control = self._tokenizer.control.get(piece)
            if control is not None:
                ids.append(control)
            else:
                ids += self._tokenizer.encode(mark.remove(piece), first=not ids)
        return ids

    def _text_of(self, token: int | None) -> str:
        return "" if token is None else self._tokenizer.metadata.tokens[token]


class _Mark:
    """Breaks control tokens inside messages by a mark nobody can guess, and takes it out again."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._mark = f"\ufdd0{secrets.token_hex(8)}\ufdd1"

    def put(self, value: Any) -> Any:
        """A copy in which every text, however deep, is broken."""
        if isinstance(value, str):
            pieces = self._tokenizer.split_control(value)
            pieces[1::2] = [piece[0] + self._mark + piece[1:] for piece in pieces[1::2]]
            return "".join(pieces)
        if isinstance(value, Mapping):
            return {self.put(key): self.put(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.put(item) for item in value]
        return value

    def remove(self, text: str) -> str:
        return text.replace(self._mark, "")


def _with_texts(message: Message) -> Message:
    """The message with its calls' arguments as JSON text."""
    calls = [
        call
        | {
            "function": call["function"]
            | {"arguments": json.dumps(call["function"]["arguments"], ensure_ascii=False)}
        }
        for call in message.get("tool_calls") or ()
    ]
    return {**message, "tool_calls": calls} if calls else message


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
