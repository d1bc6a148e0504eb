"""From a request's bytes to an exchange: read, prepared and queued."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import ParamSpec, TypeVar

import msgspec

from engine.errors import RequestError
from engine.head.answer import Generation
from engine.head.api.exchange import Exchange
from engine.head.api.origin import Origin, new_origin, vocabulary_of
from engine.head.api.preparing import Prepared, PreparedChat, Preparer
from engine.head.api.replies import Json, Reply
from engine.head.api.requests import (
    Asked,
    ChatAsked,
    CompletionAsked,
    read_chat,
    read_completion,
)
from engine.head.api.resuming import Resumption, Translator, rebased
from engine.head.begun import Begun
from engine.head.engine import HeadEngine

P = ParamSpec("P")
T = TypeVar("T")

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
TOKENIZE = "/tokenize"
"""vLLM's name for the same question."""
LONG_BODY = 20_000
"""Bytes from which reading and tokenizing a request leave the event loop."""


class Opener:
    def __init__(self, engine: HeadEngine) -> None:
        self._engine = engine
        self._preparer = Preparer(engine.tokenizer, engine.chat)
        self._vocabulary = vocabulary_of(engine.tokenizer)
        self._translator = Translator(engine.tokenizer, engine.chat, self._vocabulary)

    def over(self) -> bool:
        return self._engine.status == "failed"

    def check_model(self, model: str) -> None:
        served = self._engine.spec.served_name
        if model != served:
            raise RequestError(
                f"The model {model!r} does not exist here; this engine serves {served!r}.",
                param="model",
                code="model_not_found",
                status=404,
            )

    async def open(self, path: str, payload: bytes) -> Exchange:
        """Raises RequestError for a request that is refused; then nothing is queued."""
        asked = await self._read(path, payload)
        prepared = await self._prepare(asked, payload)
        self._check_length(asked, prepared)
        origin = new_origin(asked.wanted.seed, self._vocabulary)
        generation = self._submit(prepared, origin)
        return self._exchange(path, payload, asked, prepared, origin, generation)

    async def measure(self, payload: bytes) -> Json:
        """The tokens of a chat request's prompt, template and tools included."""
        prepared = await self._prepare(await self._read(CHAT, payload), payload)
        return {"count": len(prepared.prompts[0]), "max_model_len": self._engine.capacity}

    async def reopen(self, resumed: Resumption) -> Exchange:
        """The same for an answer that began elsewhere. One that fills the context here ends."""
        payload = bytes(resumed.request)
        asked = await self._read(resumed.path, payload)
        prepared = self._shortened(await self._prepare(asked, payload))
        thinking = isinstance(prepared, PreparedChat) and prepared.thinking
        begun = self._translator.begun(resumed, asked, thinking=thinking)
        origin = resumed.origin
        generation = self._submit(prepared, origin, begun)
        if origin.vocabulary != self._vocabulary:
            told = _chunks_of(asked, generation, begun)
            origin = rebased(origin, resumed.sent, told, self._vocabulary)
        return self._exchange(resumed.path, payload, asked, prepared, origin, generation)

    async def _read(self, path: str, payload: bytes) -> Asked:
        readers: dict[str, Callable[[bytes], Asked]] = {
            CHAT: read_chat,
            COMPLETIONS: read_completion,
        }
        if path not in readers:
            raise RequestError(f"Nothing is asked at {path!r}.", code="not_found", status=404)
        asked = await _offload(len(payload) >= LONG_BODY, readers[path], payload)
        self.check_model(asked.model)
        return asked

    async def _prepare(self, asked: Asked, payload: bytes) -> Prepared:
        slow = len(payload) >= LONG_BODY or asked.form is not None
        if isinstance(asked, ChatAsked):
            slow = slow or bool(asked.tools.functions)
            return await _offload(slow, self._preparer.chat, asked)
        assert isinstance(asked, CompletionAsked)
        return await _offload(slow, self._preparer.completion, asked)

    def _submit(
        self, prepared: Prepared, origin: Origin, begun: Sequence[Begun] = ()
    ) -> Generation:
        wanted = msgspec.structs.replace(prepared.wanted, seed=origin.seed)
        return self._engine.submit(prepared.prompts, wanted, begun)

    def _exchange(
        self,
        path: str,
        payload: bytes,
        asked: Asked,
        prepared: Prepared,
        origin: Origin,
        generation: Generation,
    ) -> Exchange:
        shape: Callable[[], Reply]
        if isinstance(asked, ChatAsked):
            assert isinstance(prepared, PreparedChat)
            shape = partial(self._preparer.chat_reply, asked, prepared, generation, origin)
        else:
            assert isinstance(asked, CompletionAsked)
            shape = partial(self._preparer.completion_reply, asked, generation, origin)
        return Exchange(asked, generation, origin, shape, self.over, path, payload)

    def _check_length(self, asked: Asked, prepared: Prepared) -> None:
        """Too long a prompt is one error, too long an answer another; both name the field."""
        field = "messages" if isinstance(asked, ChatAsked) else "prompt"
        limit = self._engine.capacity
        least = prepared.wanted.max_tokens or 1
        for prompt in prepared.prompts:
            if not prompt:
                raise RequestError("The prompt is empty.", param=field)
            if len(prompt) + least > limit:
                raise RequestError(
                    f"This model's maximum context length is {limit} tokens. The prompt has "
                    f"{len(prompt)} and at least {least} more were asked for.",
                    param=field if len(prompt) >= limit else "max_tokens",
                    code="context_length_exceeded",
                )

    def _shortened(self, prepared: Prepared) -> Prepared:
        """With no more tokens than there is room for in this engine's context."""
        longest = max(map(len, prepared.prompts), default=0)
        most = prepared.wanted.max_tokens
        if most is None or longest + most <= self._engine.capacity:
            return prepared
        room = max(1, self._engine.capacity - longest)
        wanted = msgspec.structs.replace(prepared.wanted, max_tokens=room)
        return msgspec.structs.replace(prepared, wanted=wanted)


def _chunks_of(asked: Asked, generation: Generation, begun: Sequence[Begun]) -> list[int]:
    """By answer: the chunks its beginning makes here. An end that only this engine came to is not
    among them: the caller does not have it."""
    opening = 1 if isinstance(asked, ChatAsked) else 0
    counts = [opening] * len(generation.requests)
    for delta in generation.told:
        counts[delta.index] += delta.finish is None or begun[delta.index].ended
    return counts


async def _offload(slow: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call at once, or in a thread so that nobody else waits for it."""
    return await asyncio.to_thread(work, *args, **kwargs) if slow else work(*args, **kwargs)
