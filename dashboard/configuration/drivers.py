"""What other engines call our settings: from this table follows which of them each one knows."""

from collections.abc import Mapping

EMBEDDED = "embedded"

OPTIONS: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "tp": "--tensor-parallel-size",
        "pp": "--pipeline-parallel-size",
        "ep": "--enable-expert-parallel",
        "dtype": "--quantization",
        "kv_dtype": "--kv-cache-dtype",
        "max_model_len": "--max-model-len",
        "max_batch_size": "--max-num-seqs",
        "token_budget": "--max-num-batched-tokens",
    },
    "sglang": {
        "tp": "--tp-size",
        "pp": "--pp-size",
        "ep": "--ep-size",
        "dtype": "--quantization",
        "kv_dtype": "--kv-cache-dtype",
        "max_model_len": "--context-length",
        "kv_cache_tokens": "--max-total-tokens",
        "max_batch_size": "--max-running-requests",
        "token_budget": "--chunked-prefill-size",
        "max_waiting": "--max-queued-requests",
    },
    "llamacpp": {
        "rank_weights": "--tensor-split",
        "kv_dtype": "--cache-type-k",
        "kv_cache_tokens": "--ctx-size",
        "max_batch_size": "--parallel",
        "token_budget": "--batch-size",
        "threads_per_rank": "--threads",
    },
    "trtllm": {
        "tp": "--tp_size",
        "pp": "--pp_size",
        "ep": "--ep_size",
        "max_model_len": "--max_seq_len",
        "max_batch_size": "--max_batch_size",
        "token_budget": "--max_num_tokens",
    },
}
"""Driver -> setting -> its option there."""
OURS = ("dp",)
"""Replicas are kept by Tandem itself, whatever engine each of them is."""


def drivers_of(name: str) -> tuple[str, ...]:
    others = [driver for driver, options in OPTIONS.items() if name in options or name in OURS]
    return (EMBEDDED, *others)


def options_of(name: str) -> dict[str, str]:
    """Driver -> what it calls the setting."""
    return {driver: options[name] for driver, options in OPTIONS.items() if name in options}
