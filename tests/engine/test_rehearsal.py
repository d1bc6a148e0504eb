"""A head is ready once one answer has gone the whole way; that answer counts nowhere."""

import pytest

from engine.errors import RankError
from engine.head.rehearsal import rehearsal_prompt
from engine.text.chat import ChatEncoder
from engine.text.tokenizer import TextTokenizer
from tests.engine.bundled import altered_checkpoint
from tests.engine.head_world import head_world, until


async def test_a_head_is_not_ready_before_an_answer_has_gone_the_whole_way() -> None:
    async with head_world(ready=False) as world:
        ranks = [world.add_rank(rank) for rank in range(2)]
        for rank in ranks:
            await rank.allow(0)
        await until(lambda: ranks[0].received >= 1, "the prompt of the rehearsal")
        assert world.engine.status == "loading"
        await ranks[0].allow(None)
        await until(lambda: ranks[0].answered == 2, "prompt and one more token")
        assert world.engine.status == "loading", "rank 1 has answered nothing"
        stats = await world.stats()
        assert (stats.prompt_tokens, stats.generated_tokens, stats.steps) == (0, 0, 0)
        assert stats.first_token is not None
        assert stats.first_token.counts[-1] == 0
        await ranks[1].allow(None)
        await until(lambda: world.engine.status == "ready", "being ready")


async def test_it_counts_nowhere_and_holds_nothing() -> None:
    async with head_world() as world:
        stats = await world.stats()
        assert (stats.steps, stats.prompt_tokens, stats.generated_tokens) == (0, 0, 0)
        assert (stats.finished, stats.running, stats.kv_blocks_used) == (0, 0, 0)
        assert all(rank.step_seconds is None for rank in stats.ranks)


async def test_the_words_of_the_template_are_cached_for_the_first_chat() -> None:
    async with head_world() as world:
        _, whole = await world.chat(max_tokens=1)
    assert whole["usage"]["prompt_tokens_details"]["cached_tokens"] > 0


async def test_a_model_that_cannot_answer_is_never_ready() -> None:
    async with head_world(ready=False) as world:
        for rank in range(2):
            world.add_rank(rank).mirror.poisoned.add(0)
        error = await world.death()
    assert isinstance(error, RankError)
    assert str(error) == "The first answer failed: The model produced numbers that are not finite."


@pytest.mark.parametrize("longest", [2, 16])
async def test_the_shortest_context_has_room_for_it(longest: int) -> None:
    async with head_world(max_model_len=longest) as world:
        assert world.engine.status == "ready"


def test_a_template_that_makes_nothing_of_it_leaves_a_word_to_read() -> None:
    tokenizer = TextTokenizer(altered_checkpoint(template="").tokenizer)
    assert rehearsal_prompt(ChatEncoder(tokenizer), tokenizer, 100) == tokenizer.encode("Hello")
