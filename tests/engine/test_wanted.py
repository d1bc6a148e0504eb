"""What a request wants reaches the scheduler and the ranks."""

import pytest

from engine.errors import RequestError
from engine.head.engine import Wanted
from tests.engine.head_world import head_world

ENDS = frozenset({2, 7})


def test_own_stop_tokens_are_joined_with_those_of_the_model() -> None:
    wanted = Wanted(stop_token_ids=(9,), min_tokens=3)
    assert wanted.stop_tokens(ENDS) == {2, 7, 9}
    assert wanted.sampling(1, ENDS).stop_tokens == (2, 7, 9)
    assert wanted.sampling(1, ENDS).min_tokens == 3


def test_the_end_of_sequence_is_ignored_but_not_where_a_grammar_needs_it() -> None:
    assert Wanted(ignore_eos=True, stop_token_ids=(9,)).stop_tokens(ENDS) == {9}
    assert Wanted(ignore_eos=True, grammar="{}").stop_tokens(ENDS) == ENDS


def test_reports_list_as_many_tokens_as_prompt_or_answer_want() -> None:
    assert Wanted().sampling(1, ENDS).logprobs is None
    assert Wanted(logprobs=2, prompt_logprobs=5).sampling(1, ENDS).logprobs == 5
    assert Wanted(prompt_logprobs=0).sampling(1, ENDS).logprobs == 0


async def test_answers_to_one_prompt_are_in_a_row_and_each_has_its_own_seed() -> None:
    async with head_world() as world:
        wanted = Wanted(n=3, seed=40, max_tokens=2, priority=4, prompt_logprobs=1)
        requests = world.engine.submit([[1, 2], [3, 4]], wanted).requests
        assert [request.prompt for request in requests] == [[1, 2]] * 3 + [[3, 4]] * 3
        assert [request.sampling.seed for request in requests] == [40, 41, 42] * 2
        assert {request.priority for request in requests} == {4}
        assert all(request.score_prompt and not request.share_prefix for request in requests)


async def test_a_refused_request_leaves_none_of_its_answers_behind() -> None:
    async with head_world(max_waiting=4) as world:
        with pytest.raises(RequestError, match="5 answers"):
            world.engine.submit([[1, 2]], Wanted(n=5, max_tokens=2))
        with pytest.raises(RequestError, match="context"):
            world.engine.submit([[1, 2], [1] * 99_999], Wanted(max_tokens=2))
        assert world.engine.scheduler.waiting == 0
        assert world.engine.scheduler.counters.aborted == 0


@pytest.mark.hazard("cache-namespace")
async def test_a_salt_keeps_a_tenants_prompts_apart() -> None:
    async with head_world() as world:
        prompt = list(range(40))
        for salt, cached in (("a", 0), ("a", 32), ("b", 0)):
            generation = world.engine.submit([prompt], Wanted(max_tokens=1, salt=salt))
            async for _delta in generation:
                pass
            assert generation.cached_tokens == cached
