"""The servers that others wrote become the same samples as our own head."""

import pytest

from engine.agent.engine_samples import ENGINE_METRICS
from engine.agent.foreign_samples import ForeignMetrics
from engine.drivers.base import NoAnswer
from engine.drivers.exposition import read_exposition
from engine.drivers.foreign import LLAMA_CPP, NAMES, SGLANG, VLLM
from monitoring.metrics import METRICS
from monitoring.samples import Sample

VLLM_TEXT = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.5
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="m"} 1000.0
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 200.0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 640.0
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 8.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 2.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0",model_name="m"} 9.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 10.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 3.5
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="16",cache_dtype="auto"} 1.0
"""
SGLANG_TEXT = """\
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",tp_rank="0"} 2.0
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{model_name="m"} 5.0
# TYPE sglang:token_usage gauge
sglang:token_usage{model_name="m"} 0.28
# TYPE sglang:cached_tokens_total counter
sglang:cached_tokens_total{cache_source="device",model_name="m"} 30.0
sglang:cached_tokens_total{cache_source="host",model_name="m"} 12.0
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 7557.0
# TYPE sglang:num_retracted_requests_total counter
sglang:num_retracted_requests_total{model_name="m"} 4.0
# TYPE sglang:num_aborted_requests_total counter
sglang:num_aborted_requests_total{model_name="m"} 1.0
# TYPE sglang:gen_throughput gauge
sglang:gen_throughput{model_name="m"} 86.5
# TYPE sglang:time_per_output_token_seconds histogram
sglang:time_per_output_token_seconds_bucket{le="0.005",model_name="m"} 1.0
sglang:time_per_output_token_seconds_bucket{le="+Inf",model_name="m"} 7.0
sglang:time_per_output_token_seconds_count{model_name="m"} 7.0
sglang:time_per_output_token_seconds_sum{model_name="m"} 0.3
"""
LLAMA_CPP_TEXT = """\
# HELP llamacpp:prompt_tokens_total Number of prompt tokens processed.
# TYPE llamacpp:prompt_tokens_total counter
llamacpp:prompt_tokens_total 6886
# TYPE llamacpp:tokens_predicted_total counter
llamacpp:tokens_predicted_total 3469
# TYPE llamacpp:predicted_tokens_seconds gauge
llamacpp:predicted_tokens_seconds 0.98
# TYPE llamacpp:requests_processing gauge
llamacpp:requests_processing 1
# TYPE llamacpp:requests_deferred gauge
llamacpp:requests_deferred 0
"""


def read(engine: str, text: str, *, twice: str = "") -> dict[tuple[str, str], Sample]:
    metrics = ForeignMetrics(NAMES[engine], "l1", f"{engine} /metrics")
    samples = metrics.read(text, 10.0)
    if twice:
        samples = metrics.read(twice, 12.0)
    return {(sample.metric, sample.label): sample for sample in samples}


def test_vllm_is_read_and_its_processes_are_folded() -> None:
    found = read("vllm", VLLM_TEXT)
    assert found["requests_running", ""].value == 7
    assert found["kv_cache_usage_ratio", ""].value == 0.5
    assert found["cached_prompt_tokens_total", ""].value == 640
    assert found["requests_finished_total", "stop"].value == 8
    assert found["time_to_first_token_seconds_bucket", "le=1"].value == 9
    assert found["time_to_first_token_seconds_bucket", "le=+Inf"].value == 10
    assert found["time_to_first_token_seconds_sum", ""].value == 3.5


def test_sglang_is_read() -> None:
    found = read("sglang", SGLANG_TEXT)
    assert found["requests_running", ""].value == 2
    assert found["cached_prompt_tokens_total", ""].value == 42
    assert found["preemptions_total", ""].value == 4
    assert found["requests_finished_total", "abort"].value == 1
    assert found["inter_token_latency_seconds_bucket", "le=0.005"].value == 1


def test_llama_cpp_is_read() -> None:
    found = read("llamacpp", LLAMA_CPP_TEXT)
    assert found["generation_tokens_total", ""].value == 3469
    assert found["requests_waiting", ""].value == 0
    assert found["kv_cache_usage_ratio", ""].value is None, "this version does not tell it"


def test_the_rate_comes_from_the_counter_and_is_absent_while_it_stands() -> None:
    later = LLAMA_CPP_TEXT.replace("3469", "3569")
    rate = read("llamacpp", LLAMA_CPP_TEXT, twice=later)["generation_tokens_per_second", ""]
    assert (rate.value, rate.kind) == (50.0, "derived")
    still = read("llamacpp", LLAMA_CPP_TEXT, twice=LLAMA_CPP_TEXT)
    assert still["generation_tokens_per_second", ""].value is None


@pytest.mark.parametrize("engine", NAMES)
def test_what_a_server_does_not_tell_is_absent_with_a_reason(engine: str) -> None:
    found = read(engine, "")
    assert {metric for metric, _label in found} == {metric.name for metric in ENGINE_METRICS}
    assert all(sample.value is None and sample.reason for sample in found.values())


def test_two_names_of_one_metric_are_counted_once() -> None:
    both = "vllm:kv_cache_usage_perc 0.25\nvllm:gpu_cache_usage_perc 0.75\n"
    (found,) = read_exposition(both, VLLM)
    assert found.value == 0.25


def test_numbers_that_are_none_are_left_out() -> None:
    assert read_exposition("sglang:token_usage NaN\n", SGLANG) == []


def test_a_page_of_something_else_is_no_answer() -> None:
    with pytest.raises(NoAnswer, match="cannot be read"):
        read_exposition("<html>{{{", LLAMA_CPP)


@pytest.mark.parametrize("engine", NAMES)
def test_every_name_leads_to_a_metric_of_ours(engine: str) -> None:
    for named in NAMES[engine].values():
        parts = ("_bucket", "_sum") if named.histogram else ("",)
        assert all(named.metric + part in METRICS for part in parts)
