"""The first answer of a fresh engine, which nobody asked for and nobody sees.

It goes the way of every chat: template, tokenizer, scheduler, ranks, detokenizer. So the first
person finds all of them warm and the template's own words cached, and a model that cannot answer at
all is found out before it is said to be ready.
"""

from engine.errors import RequestError
from engine.head.wanted import Wanted
from engine.text.chat import ChatEncoder
from engine.text.tokenizer import TextTokenizer

ANSWER = 2
"""Tokens: one after reading the prompt, one after a token."""
_HELLO = "Hello"


def rehearsal_prompt(chat: ChatEncoder, tokenizer: TextTokenizer, capacity: int) -> list[int]:
    """A short conversation, or a word where the model has no template that makes it a prompt."""
    try:
        prompt = chat.encode([{"role": "user", "content": _HELLO}])
    except RequestError:
        prompt = []
    prompt = prompt or tokenizer.bos_ids + tokenizer.encode(_HELLO)
    return prompt[: max(1, capacity - ANSWER)]


def rehearsal_answer(prompt: list[int], capacity: int) -> Wanted:
    return Wanted(temperature=0.0, max_tokens=min(ANSWER, capacity - len(prompt)), ignore_eos=True)
