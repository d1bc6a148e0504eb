"""From what was asked to prompts, a form, and a reader of the answers. Takes no event loop: a long
text or a large schema is prepared in a thread."""

from collections.abc import Sequence

import msgspec

from engine.errors import RequestError
from engine.head.answer import Generation
from engine.head.api.chat_reply import ChatReply
from engine.head.api.completion_reply import CompletionReply
from engine.head.api.logprobs import EchoedPrompt, LogprobShaper
from engine.head.api.origin import Origin
from engine.head.api.replies import Reply
from engine.head.api.requests import Asked, ChatAsked, CompletionAsked
from engine.head.api.speech import Listener
from engine.head.wanted import Wanted
from engine.text.chat import ChatEncoder, ChatPrompt
from engine.text.outline import Calls, Outliner, strict_calls
from engine.text.reasoning import ReasoningSplitter
from engine.text.tokenizer import TextTokenizer
from engine.text.tools import Function


class Prepared(msgspec.Struct, frozen=True):
    prompts: list[list[int]]
    wanted: Wanted


class Preparer:
    """For one model."""

    def __init__(self, tokenizer: TextTokenizer, chat: ChatEncoder) -> None:
        self._tokenizer = tokenizer
        self._chat = chat
        self._outliner = Outliner(tokenizer, chat.tags)
        self._controls = frozenset(tokenizer.control.values())

    def chat(self, asked: ChatAsked) -> "PreparedChat":
        """Raises RequestError for what this model cannot do."""
        try:
            return self._chat_prepared(asked)
        except RecursionError as error:
            raise RequestError("The request is nested too deeply.", param="messages") from error

    def _chat_prepared(self, asked: ChatAsked) -> "PreparedChat":
        prompt = self._chat.prepare(asked.chat)
        grammar = self._grammar(asked, prompt)
        style = self._chat.style if asked.tools.functions else None
        markers = [*(style.markers if style else ()), *self._tag_names]
        wanted = self._wanted(asked, grammar, frozenset(self._known(markers)))
        if style and not wanted.ignore_eos:
            ends = wanted.stop_token_ids + self._known(style.ends)
            wanted = msgspec.structs.replace(wanted, stop_token_ids=ends)
        return PreparedChat([prompt.ids], wanted, prompt.thinking)

    def completion(self, asked: CompletionAsked) -> Prepared:
        """Raises RequestError for what this model cannot do."""
        prompts = [self._encoded(prompt, add_bos=asked.add_bos) for prompt in asked.prompts]
        grammar = asked.form.compile() if asked.form else ""
        return Prepared(prompts, self._wanted(asked, grammar, frozenset()))

    def chat_reply(
        self,
        asked: ChatAsked,
        prepared: "PreparedChat",
        generation: Generation,
        origin: Origin,
    ) -> Reply:
        style = self._chat.style

        def listen(index: int) -> Listener:
            return Listener(
                index,
                ReasoningSplitter(self._chat.tags, opened=prepared.thinking),
                style.parser() if asked.tools.functions else None,
                parallel=asked.tools.parallel,
                tell_reasoning=asked.include_reasoning,
            )

        return ChatReply(
            asked.model,
            generation,
            self._shaper(asked),
            listen,
            style.call_id,
            origin,
            prompt_logprobs=asked.wanted.prompt_logprobs is not None,
        )

    def completion_reply(
        self, asked: CompletionAsked, generation: Generation, origin: Origin
    ) -> Reply:
        def echo(index: int) -> EchoedPrompt:
            prompt = asked.prompts[index // asked.wanted.n]
            request = generation.requests[index]
            written = prompt if isinstance(prompt, str) else None
            return EchoedPrompt(self._tokenizer, request.prompt, request.prompt_logprobs, written)

        return CompletionReply(
            asked.model,
            generation,
            self._shaper(asked),
            echo if asked.echo else None,
            origin,
            prompt_logprobs=asked.prompt_logprobs,
            silent=asked.silent,
        )

    def _shaper(self, asked: Asked) -> LogprobShaper:
        wanted = asked.wanted
        return LogprobShaper(self._tokenizer, wanted.logprobs, wanted.prompt_logprobs)

    @property
    def _tag_names(self) -> Sequence[str]:
        tags = self._chat.tags
        return () if tags is None else (tags.open, tags.close)

    def _grammar(self, asked: ChatAsked, prompt: ChatPrompt) -> str:
        answer = asked.form.compile() if asked.form else ""
        calls = self._calls(asked)
        constrained = calls is not None and (calls.forced or answer or strict_calls(calls))
        return self._outliner.compile(
            answer=answer,
            calls=calls if constrained else None,
            thinking=prompt.thinking,
            silent=prompt.silent,
        )

    def _calls(self, asked: ChatAsked) -> Calls | None:
        tools = asked.tools
        functions: Sequence[Function] = tools.forced or tools.functions
        if not functions:
            return None
        return Calls(
            style=self._chat.style,
            functions=functions,
            many=tools.parallel,
            forced=bool(tools.forced),
        )

    def _wanted(self, asked: Asked, grammar: str, shown: frozenset[int]) -> Wanted:
        wanted = asked.wanted
        self._tokenizer.check_ids(list(wanted.logit_bias), "logit_bias")
        self._tokenizer.check_ids(wanted.stop_token_ids, "stop_token_ids")
        if asked.show_control:
            shown = self._controls
        return msgspec.structs.replace(wanted, grammar=grammar, shown=shown)

    def _known(self, names: Sequence[str]) -> tuple[int, ...]:
        """Those that are control tokens of this model."""
        control = self._tokenizer.control
        return tuple(control[name] for name in names if name in control)

    def _encoded(self, prompt: str | list[int], *, add_bos: bool) -> list[int]:
        tokenizer = self._tokenizer
        if not isinstance(prompt, str):
            tokenizer.check_ids(prompt, "prompt")
            return prompt
        return (tokenizer.bos_ids if add_bos else []) + tokenizer.encode_trusted(prompt)


class PreparedChat(Prepared, frozen=True):
    thinking: bool
