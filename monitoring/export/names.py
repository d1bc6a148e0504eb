"""How readings are called in the export: names, help texts, labels, and vLLM's names for them.

Programs read this, so it is in English whatever the panel's language is.
"""

from dataclasses import dataclass
from functools import cache

from monitoring.metrics import METRICS

PREFIX = "tandem_"


@dataclass(frozen=True)
class Renamed:
    """Where a metric cannot keep its name: a histogram has it, or its unit is no base unit."""

    name: str
    scale: float = 1.0


RENAMED = {
    "time_to_first_token_seconds": Renamed("time_to_first_token_recent_seconds"),
    "inter_token_latency_seconds": Renamed("inter_token_latency_recent_seconds"),
    "link_speed_bits_per_second": Renamed("link_speed_bytes_per_second", 0.125),
}

LABELS = {
    "temperature_celsius": "sensor",
    "inlet_temperature_celsius": "sensor",
    "fan_speed_rpm": "fan",
    "network_received_bytes_total": "interface",
    "network_sent_bytes_total": "interface",
    "link_received_bytes_total": "interface",
    "link_sent_bytes_total": "interface",
    "link_errors_total": "interface",
    "link_speed_bits_per_second": "interface",
    "link_round_trip_seconds": "peer",
    "gpu_clock_hertz": "clock",
    "gpu_throttled_ratio": "reason",
    "gpu_ecc_errors_total": "type",
    "gpu_xid_errors_total": "xid",
    "gpu_memory_total_bytes": "memory",
    "noise_dba": "position",
    "noise_band_dba": "position",
    "firmware_staged_ratio": "component",
    "requests_finished_total": "reason",
    "expert_tokens_total": "expert",
}
"""What a reading's own label is called; `label` for all others."""

HELP = {
    "cpu_utilization_ratio": "Share of time in which the processors were at work.",
    "memory_used_bytes": "Memory that a new process could not have without swapping.",
    "memory_total_bytes": "Memory of the host.",
    "memory_available_bytes": "Memory that a new process could have without swapping.",
    "memory_page_cache_bytes": "Memory that holds files and can be given up.",
    "memory_floor_bytes": "Memory that engines leave free.",
    "temperature_celsius": "Temperature by sensor; without a sensor the hottest.",
    "inlet_temperature_celsius": "Temperature of the air that comes in.",
    "fan_speed_rpm": "Turns a minute by fan; without a fan the fastest.",
    "disk_free_bytes": "Free space where the node keeps its state.",
    "clock_skew_seconds": "The panel's clock minus the node's.",
    "network_received_bytes_total": "Received over all interfaces.",
    "network_sent_bytes_total": "Sent over all interfaces.",
    "link_received_bytes_total": "Received over the interface that leads to the other boxes.",
    "link_sent_bytes_total": "Sent over the interface that leads to the other boxes.",
    "link_errors_total": "Errors of the interface that leads to the other boxes.",
    "link_speed_bits_per_second": "Negotiated speed of the link.",
    "link_round_trip_seconds": "To another box and back.",
    "process_cpu_ratio": "Processor time of the process; 1 is one core kept busy.",
    "process_memory_bytes": "Memory of the process.",
    "gpu_utilization_ratio": "Share of time in which a kernel ran on the device.",
    "gpu_memory_used_bytes": "Device memory in use.",
    "gpu_memory_total_bytes": "Device memory; unified where it is the host's.",
    "gpu_memory_headroom_bytes": "Device memory that is free.",
    "gpu_temperature_celsius": "Temperature of the device.",
    "gpu_power_limit_watts": "Power that the device may draw.",
    "gpu_clock_hertz": "Clock of the device.",
    "gpu_throttled_ratio": "1 while the clock is held down for this reason.",
    "gpu_fan_ratio": "Intended speed of the device's fan.",
    "gpu_ecc_errors_total": "Memory errors.",
    "gpu_xid_errors_total": "Faults that the driver reported.",
    "gpu_health_ratio": "1 healthy, 0 not, as the device's own driver judges.",
    "power_watts": "Power by scope; scopes overlap and must not be added up.",
    "energy_joules_total": "Energy by scope; scopes overlap and must not be added up.",
    "noise_dba": "A-weighted sound level, energetic mean of a second.",
    "noise_band_dba": "Half the width of what the sound level may really be.",
    "microphone_level_dbfs": "A-weighted level before any calibration; full-scale RMS is 0.",
    "source_age_seconds": "How old the newest reading is of what is asked outside the machine.",
    "firmware_staged_ratio": "1 while a version of the component waits to become active.",
    "generation_tokens_per_second": "Tokens generated in the last second.",
    "prompt_tokens_total": "Prompt tokens admitted.",
    "generation_tokens_total": "Tokens generated.",
    "cached_prompt_tokens_total": "Prompt tokens found in the prefix cache.",
    "time_to_first_token_seconds": "Median time to first token over the last 30 s.",
    "inter_token_latency_seconds": "Median time between two tokens over the last 30 s.",
    "time_to_first_token_seconds_bucket": "From a request's arrival to its first token.",
    "inter_token_latency_seconds_bucket": "Between two tokens of one answer.",
    "queue_seconds_bucket": "From a request's arrival to its computation.",
    "request_duration_seconds_bucket": "From a request's arrival to its last token.",
    "requests_running": "Requests that hold KV blocks.",
    "requests_waiting": "Requests in the queue.",
    "requests_finished_total": "Requests ended, by reason.",
    "batch_size_rows": "Mean rows of the last second's steps.",
    "batch_cap_rows": "Most answers that advance in one step.",
    "kv_cache_usage_ratio": "KV blocks held by live sequences.",
    "prefix_hit_ratio": "Prompt tokens of the last 30 s that were not computed again.",
    "preemptions_total": "Requests that gave up their KV blocks.",
    "pipeline_bubble_ratio": "The ranks' working time without work, mean.",
    "expert_tokens_total": "Tokens that each expert computed since its ranks started.",
    "engine_epochs_total": "Times the ranks were started anew.",
    "engine_busy_ratio": "Share of the last second in which a step was on its way.",
    "engine_progress_age_seconds": "How long work in hand has not advanced.",
    "step_seconds": "Mean time of the last second's steps.",
    "communicate_seconds": "Mean time of a step spent exchanging with other ranks.",
    "communicate_ratio": "Share of a step spent exchanging with other ranks.",
    "rank_bubble_ratio": "Working time that the rank spends without work.",
    "rank_weight_bytes": "Weights that the rank holds.",
    "rank_kv_bytes": "KV cache that the rank holds.",
}

ALIASES: dict[str, tuple[str, ...]] = {
    "requests_running": ("vllm:num_requests_running",),
    "requests_waiting": ("vllm:num_requests_waiting",),
    "kv_cache_usage_ratio": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
    "prompt_tokens_total": ("vllm:prompt_tokens_total", "vllm:prefix_cache_queries_total"),
    "generation_tokens_total": ("vllm:generation_tokens_total",),
    "cached_prompt_tokens_total": ("vllm:prefix_cache_hits_total",),
    "preemptions_total": ("vllm:num_preemptions_total",),
    "requests_finished_total": ("vllm:request_success_total",),
    "time_to_first_token_seconds_bucket": ("vllm:time_to_first_token_seconds",),
    "inter_token_latency_seconds_bucket": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
    ),
    "queue_seconds_bucket": ("vllm:request_queue_time_seconds",),
    "request_duration_seconds_bucket": ("vllm:e2e_request_latency_seconds",),
}
"""Names that public boards ask for, the older ones beside the newer."""
SUCCESS = ("stop", "length")
"""Of the reasons for which a request ends, those that vLLM counts as success."""


@cache
def exported_name(metric: str) -> str:
    """The family's name, such as `tandem_power_watts`; a histogram's parts share one."""
    if metric in RENAMED:
        return PREFIX + RENAMED[metric].name
    return PREFIX + histogram_of(metric)


@cache
def histogram_of(metric: str) -> str:
    """The metric itself where it is no part of a histogram."""
    for suffix in ("_bucket", "_sum"):
        base = metric.removesuffix(suffix)
        if base != metric and f"{base}_bucket" in METRICS:
            return base
    return metric


def help_of(metric: str) -> str:
    if metric in HELP:
        return HELP[metric]
    return f"In {METRICS[metric].unit}." if metric in METRICS else "Not known to this version."


def label_of(metric: str) -> str:
    return LABELS.get(metric, "label")
