"""Prompts with the same beginning share its blocks; nothing else is ever shared."""

import pytest

from engine.config import EngineConfig
from engine.core.prefix import chain, namespace
from engine.core.request import Request
from engine.core.scheduler import Scheduler
from tests.engine.mirror import RankMirror, answer

PROMPT = list(range(48))


def serve(scheduler: Scheduler, mirror: RankMirror, request: Request) -> Request:
    scheduler.add(request)
    while (step := scheduler.schedule(0.0)) is not None:
        scheduler.apply(mirror.run(step), 0.0)
    return request


def ask(name: str, prompt: list[int], salt: str = "") -> Request:
    return Request(id=name, prompt=prompt, max_tokens=5, namespace=namespace("m", "r1", salt))


def world() -> tuple[Scheduler, RankMirror]:
    return Scheduler(EngineConfig(kv_cache_tokens=64 * 16), 512), RankMirror()


def test_the_last_prompt_token_is_always_computed_again() -> None:
    scheduler, mirror = world()
    first = serve(scheduler, mirror, ask("a", PROMPT))
    second = serve(scheduler, mirror, ask("b", PROMPT))
    assert (first.cached_tokens, second.cached_tokens) == (0, 32)
    assert first.emitted == second.emitted == answer(PROMPT, 5)


def test_answers_are_part_of_the_next_turns_prefix() -> None:
    scheduler, mirror = world()
    first = serve(scheduler, mirror, ask("a", PROMPT[:44]))
    turn = [*first.history, 1, 2, 3]
    assert serve(scheduler, mirror, ask("b", turn)).cached_tokens == 48


def test_only_full_blocks_are_shared() -> None:
    scheduler, mirror = world()
    serve(scheduler, mirror, ask("a", PROMPT[:30]))
    other = serve(scheduler, mirror, ask("b", [*PROMPT[:29], 90, 91, 92]))
    assert other.cached_tokens == 16
    assert other.emitted == answer(other.prompt, 5)


@pytest.mark.hazard("cache-namespace")
def test_tenants_never_share() -> None:
    scheduler, mirror = world()
    serve(scheduler, mirror, ask("a", PROMPT, salt="one"))
    assert serve(scheduler, mirror, ask("b", PROMPT, salt="two")).cached_tokens == 0


@pytest.mark.hazard("cache-namespace")
def test_namespaces_cannot_be_forged_by_moving_a_letter() -> None:
    assert namespace("ab", "c") != namespace("a", "bc")


def test_cached_blocks_are_given_up_under_pressure_oldest_first() -> None:
    scheduler = Scheduler(EngineConfig(kv_cache_tokens=8 * 16), 512)
    mirror = RankMirror()
    serve(scheduler, mirror, ask("a", PROMPT))
    serve(scheduler, mirror, ask("b", list(range(100, 180))))
    assert scheduler.pool.cached > 0
    assert serve(scheduler, mirror, ask("c", PROMPT)).emitted == answer(PROMPT, 5)
    scheduler.audit()


def test_hashes_that_are_known_need_not_be_made_again() -> None:
    root = namespace("m", "r1")
    whole = chain(root, PROMPT, 3)
    assert chain(root, PROMPT, 3, whole[:1]) == whole
    assert len(set(whole)) == 3
