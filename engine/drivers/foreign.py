"""How the servers that others wrote name what they measure: pure tables.

The names are those of vLLM's V1 engine (with the older ones that a few versions still use), of
SGLang with `--enable-metrics`, and of llama.cpp's server with `--metrics`. What a server only
averages over a window of its own, such as a throughput, is left out: it would stand still while
nothing runs.
"""

from collections.abc import Mapping

from engine.drivers.base import Named

VLLM: Mapping[str, Named] = {
    "vllm:num_requests_running": Named("requests_running"),
    "vllm:num_requests_waiting": Named("requests_waiting"),
    "vllm:kv_cache_usage_perc": Named("kv_cache_usage_ratio", "max"),
    "vllm:gpu_cache_usage_perc": Named("kv_cache_usage_ratio", "max"),
    "vllm:prompt_tokens_total": Named("prompt_tokens_total"),
    "vllm:generation_tokens_total": Named("generation_tokens_total"),
    "vllm:prefix_cache_hits_total": Named("cached_prompt_tokens_total"),
    "vllm:num_preemptions_total": Named("preemptions_total"),
    "vllm:request_success_total": Named("requests_finished_total", label="finished_reason"),
    "vllm:time_to_first_token_seconds": Named("time_to_first_token_seconds", histogram=True),
    "vllm:inter_token_latency_seconds": Named("inter_token_latency_seconds", histogram=True),
    "vllm:time_per_output_token_seconds": Named("inter_token_latency_seconds", histogram=True),
    "vllm:request_queue_time_seconds": Named("queue_seconds", histogram=True),
    "vllm:e2e_request_latency_seconds": Named("request_duration_seconds", histogram=True),
}

SGLANG: Mapping[str, Named] = {
    "sglang:num_running_reqs": Named("requests_running"),
    "sglang:num_queue_reqs": Named("requests_waiting"),
    "sglang:token_usage": Named("kv_cache_usage_ratio", "max"),
    "sglang:prompt_tokens_total": Named("prompt_tokens_total"),
    "sglang:generation_tokens_total": Named("generation_tokens_total"),
    "sglang:cached_tokens_total": Named("cached_prompt_tokens_total"),
    "sglang:num_retracted_requests_total": Named("preemptions_total"),
    "sglang:num_aborted_requests_total": Named("requests_finished_total", fixed="abort"),
    "sglang:time_to_first_token_seconds": Named("time_to_first_token_seconds", histogram=True),
    "sglang:inter_token_latency_seconds": Named("inter_token_latency_seconds", histogram=True),
    "sglang:time_per_output_token_seconds": Named("inter_token_latency_seconds", histogram=True),
    "sglang:queue_time_seconds": Named("queue_seconds", histogram=True),
    "sglang:e2e_request_latency_seconds": Named("request_duration_seconds", histogram=True),
}

LLAMA_CPP: Mapping[str, Named] = {
    "llamacpp:requests_processing": Named("requests_running"),
    "llamacpp:requests_deferred": Named("requests_waiting"),
    "llamacpp:kv_cache_usage_ratio": Named("kv_cache_usage_ratio", "max"),
    "llamacpp:prompt_tokens_total": Named("prompt_tokens_total"),
    "llamacpp:tokens_predicted_total": Named("generation_tokens_total"),
    "llamacpp:prompt_tokens_cached_total": Named("cached_prompt_tokens_total"),
}

NAMES: Mapping[str, Mapping[str, Named]] = {
    "vllm": VLLM,
    "sglang": SGLANG,
    "llamacpp": LLAMA_CPP,
}
