"""What a head says about itself is true, and absent where there is nothing to say."""

from prometheus_client.parser import text_string_to_metric_families

from tests.engine.head_world import HeadWorld, head_world, until


async def samples(world: HeadWorld) -> dict[str, float]:
    async with world.http.get("/metrics") as answer:
        assert answer.status == 200
        text = await answer.text()
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_before_any_request_nothing_is_claimed() -> None:
    async with head_world() as world:
        stats = await world.stats()
        scraped = await samples(world)
    assert stats.status == "ready"
    assert (stats.ttft_seconds, stats.itl_seconds, stats.tokens_per_second) == (None, None, None)
    assert all(rank.step_seconds is None for rank in stats.ranks)
    assert "tandem_generation_tokens_per_second" not in scraped
    assert scraped["tandem_requests_running"] == 0
    assert scraped["tandem_epochs_total"] == scraped["tandem_resumed_requests_total"] == 0
    assert "tandem_recovery_seconds" not in scraped


async def test_counters_follow_the_requests() -> None:
    async with head_world() as world:
        wholes = [(await world.chat(max_tokens=30))[1] for _ in range(2)]
        stats = await world.stats()
        scraped = await samples(world)
    prompt = wholes[0]["usage"]["prompt_tokens"]
    cached = [whole["usage"]["prompt_tokens_details"]["cached_tokens"] for whole in wholes]
    assert (stats.prompt_tokens, stats.generated_tokens, stats.finished) == (2 * prompt, 60, 2)
    assert stats.cached_tokens == sum(cached) > 0
    assert stats.kv_blocks_cached > 0
    assert stats.ttft_seconds is not None
    assert stats.itl_seconds is not None
    assert [rank.step_seconds for rank in stats.ranks] == [0.002, 0.002]
    assert scraped["vllm:generation_tokens_total"] == 60
    assert scraped["tandem_prompt_tokens_total"] == 2 * prompt
    assert scraped["vllm:prefix_cache_hits_total"] == stats.cached_tokens
    assert scraped["vllm:time_to_first_token_seconds_count"] == 2
    assert scraped["vllm:inter_token_latency_seconds_count"] == 58


async def test_a_running_request_shows() -> None:
    async with head_world() as world:
        await world.ranks[0].allow(3)
        stream = world.http.post(
            "/v1/completions",
            json={"model": "small", "prompt": "x", "max_tokens": 99, "stream": True},
        )
        async with stream:
            await until(lambda: world.ranks[0].received >= 4, "the fourth step")
            stats = await world.stats()
            scraped = await samples(world)
            await world.ranks[0].allow(None)
    assert (stats.running, stats.kv_blocks_used) == (1, 1)
    assert stats.tokens_per_second == 3
    assert scraped["vllm:num_requests_running"] == 1
    assert scraped["vllm:kv_cache_usage_perc"] == 1 / stats.kv_blocks_total
