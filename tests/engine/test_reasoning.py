"""What a model thinks is told apart from what it answers."""

import random
from itertools import pairwise
from typing import Any

import pytest

from engine.text.reasoning import KNOWN, ReasoningSplitter, find_tags
from tests.engine.bundled import altered_checkpoint
from tests.engine.head_world import HeadWorld, head_world

TAGS = KNOWN[0]
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% elif opened %}<think>\n{% endif %}{% endif %}"
)


def split(pieces: list[str], *, opened: bool) -> tuple[str, str]:
    splitter = ReasoningSplitter(TAGS, opened=opened)
    parts = [splitter.feed(piece) for piece in pieces] + [splitter.finish()]
    return "".join(p.reasoning for p in parts), "".join(p.content for p in parts)


@pytest.mark.hazard("reasoning-tags")
@pytest.mark.parametrize(
    ("text", "opened", "reasoning", "content"),
    [
        ("<think>\nso  it\n\nis\n</think>\n\nYes. ", False, "so  it\n\nis", "Yes. "),
        ("it is\n</think>\n\nYes", True, "it is", "Yes"),
        ("<think> < </ </thin k> </think>Yes", False, "< </ </thin k>", "Yes"),
        ("<think>cut", False, "cut", ""),
        ("cut </thi", True, "cut </thi", ""),
        ("\n<think>\n\n</think>\n\n<b>", False, "", "<b>"),
        (" Yes <think>", False, "", " Yes <think>"),
        ("<thinking> no", False, "", "<thinking> no"),
    ],
)
def test_the_block_is_found_however_the_text_is_cut(
    text: str, opened: bool, reasoning: str, content: str
) -> None:
    ways = [[text], list(text)]
    for seed in range(10):
        inner = random.Random(seed).sample(range(len(text) + 1), 4)
        ways.append([text[a:b] for a, b in pairwise([0, *sorted(inner), len(text)])])
    for pieces in ways:
        assert split(pieces, opened=opened) == (reasoning, content)


def test_a_template_that_only_opens_the_block_has_named_its_tags() -> None:
    assert find_tags("{{ messages }}<think>", ()) == KNOWN[0]


def test_a_model_without_such_tags_only_answers() -> None:
    assert find_tags("{{ messages }}", {"think"}) is None
    splitter = ReasoningSplitter(None)
    assert splitter.feed(" <think>x").content == " <think>x"


async def ask(world: HeadWorld, text: str, **body: Any) -> tuple[str, str, str]:
    """Reasoning, content and finish, the same streamed and whole."""
    body = {"max_tokens": 100} | body
    await world.rehearse(text, **body)
    status, answer = await world.chat(**body)
    assert status == 200, answer
    choice = answer["choices"][0]
    message = choice["message"]
    whole = (
        message.get("reasoning_content", ""),
        message["content"],
        choice["finish_reason"],
    )
    assert message.get("reasoning") == message.get("reasoning_content")
    choices = [choice for event in await world.stream(**body) for choice in event["choices"]]
    deltas = [choice["delta"] for choice in choices]
    streamed = (
        "".join(delta.get("reasoning_content") or "" for delta in deltas),
        "".join(delta.get("content") or "" for delta in deltas),
        choices[-1]["finish_reason"],
    )
    assert streamed == whole
    return whole


async def test_whole_and_streamed_answers_keep_reasoning_apart() -> None:
    async with head_world(checkpoint=altered_checkpoint(template=TEMPLATE)) as world:
        text = "<think>\nHm, 漢字.\n</think>\n\nYes."
        assert await ask(world, text) == ("Hm, 漢字.", "Yes.", "stop")
        assert await ask(world, text, include_reasoning=False) == ("", "Yes.", "stop")
        opened = {"chat_template_kwargs": {"opened": True}}
        assert await ask(world, "Hm.\n</think>\nYes.", **opened) == ("Hm.", "Yes.", "stop")
        closed = {"chat_template_kwargs": {"enable_thinking": False}}
        assert await ask(world, "Yes.", **closed) == ("", "Yes.", "stop")


@pytest.mark.hazard("reasoning-tags")
async def test_holding_back_for_a_stop_string_tears_no_tag() -> None:
    async with head_world(checkpoint=altered_checkpoint(template=TEMPLATE)) as world:
        text = "<think>\nHm.\n</think>\n\nYes, that is it."
        for stop in ("</think", "<x", "</thinking>", "ink>\n\nYes, no", "that"):
            expected = text.partition(stop)[0] if stop in text else text
            reasoning, content, finish = await ask(world, text, stop=stop)
            whole = split([expected], opened=False)
            assert (reasoning, content, finish) == (*whole, "stop"), stop
