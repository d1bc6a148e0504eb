"""Every metric there is: its name, its unit and how it behaves. Imports nothing of ours.

Names are those of the export, without its `tandem_`. Units are base units: seconds, bytes, watts,
joules, ratio 0..1. A counter only grows, until its source starts over; a bucket is the counter of
one bar of a histogram, labelled `le=…` with the bar's upper bound (the bars are cumulative).
"""

from typing import Literal

import msgspec

Shape = Literal["gauge", "counter", "bucket"]


class Metric(msgspec.Struct, frozen=True):
    name: str
    unit: str
    shape: Shape = "gauge"
    signed: bool = False
    """Whether a negative value can be meant."""


# The host.
CPU_UTILIZATION = Metric("cpu_utilization_ratio", "ratio")
MEMORY_USED = Metric("memory_used_bytes", "bytes")
"""What a new process could not have without swapping."""
MEMORY_TOTAL = Metric("memory_total_bytes", "bytes")
MEMORY_AVAILABLE = Metric("memory_available_bytes", "bytes")
MEMORY_PAGE_CACHE = Metric("memory_page_cache_bytes", "bytes")
MEMORY_FLOOR = Metric("memory_floor_bytes", "bytes")
"""What engines leave free; declared."""
TEMPERATURE = Metric("temperature_celsius", "celsius", signed=True)
"""Labelled by sensor; without a label the hottest."""
INLET_TEMPERATURE = Metric("inlet_temperature_celsius", "celsius", signed=True)
FAN_SPEED = Metric("fan_speed_rpm", "rpm")
"""Labelled by fan; without a label the fastest."""
DISK_FREE = Metric("disk_free_bytes", "bytes")
CLOCK_SKEW = Metric("clock_skew_seconds", "seconds", signed=True)
"""The panel's clock minus the node's. Readings are stored on the panel's clock."""
NETWORK_RECEIVED = Metric("network_received_bytes_total", "bytes", "counter")
NETWORK_SENT = Metric("network_sent_bytes_total", "bytes", "counter")
LINK_RECEIVED = Metric("link_received_bytes_total", "bytes", "counter")
"""Labelled by interface, for the one that leads to the other boxes."""
LINK_SENT = Metric("link_sent_bytes_total", "bytes", "counter")
LINK_ERRORS = Metric("link_errors_total", "errors", "counter")
LINK_SPEED = Metric("link_speed_bits_per_second", "bits/s")
LINK_ROUND_TRIP = Metric("link_round_trip_seconds", "seconds")
"""Labelled by the other box's address."""
PROCESS_CPU = Metric("process_cpu_ratio", "ratio")
"""1.0 is one core kept busy."""
PROCESS_MEMORY = Metric("process_memory_bytes", "bytes")

# Accelerators, one subject each (`gpu:<index>`).
GPU_UTILIZATION = Metric("gpu_utilization_ratio", "ratio")
"""Share of time in which a kernel ran: how long, not how much, it was at work."""
GPU_MEMORY_USED = Metric("gpu_memory_used_bytes", "bytes")
GPU_MEMORY_TOTAL = Metric("gpu_memory_total_bytes", "bytes")
"""Labelled `unified` where it is the host's memory."""
GPU_MEMORY_HEADROOM = Metric("gpu_memory_headroom_bytes", "bytes")
GPU_TEMPERATURE = Metric("gpu_temperature_celsius", "celsius", signed=True)
GPU_POWER_LIMIT = Metric("gpu_power_limit_watts", "watts")
GPU_CLOCK = Metric("gpu_clock_hertz", "hertz")
"""Labelled `sm` or `memory`."""
GPU_THROTTLED = Metric("gpu_throttled_ratio", "ratio")
"""Labelled by reason (`power`, `thermal`, `hardware`): 1 while the clock is held down for it."""
GPU_FAN = Metric("gpu_fan_ratio", "ratio")
"""The speed that is intended, not one that was counted."""
GPU_ECC_ERRORS = Metric("gpu_ecc_errors_total", "errors", "counter")
"""Labelled `corrected`, `uncorrected` or `remapped` (rows of memory taken out of use)."""
GPU_XID_ERRORS = Metric("gpu_xid_errors_total", "errors", "counter")
"""Labelled by the fault's number; without a label all of them, since the agent started."""
GPU_HEALTH = Metric("gpu_health_ratio", "ratio")
"""1 healthy, 0 not, as the device's own driver judges."""

FIRMWARE_STAGED = Metric("firmware_staged_ratio", "ratio")
"""Labelled by component: 1 while a version lies there that is not active yet."""

# Power, energy and sound. Scopes overlap and are never added up.
POWER = Metric("power_watts", "watts")
"""Scope: `accelerator`, `cpu`, `host` (the BMC's or the board's) or `wall` (a metered plug)."""
ENERGY = Metric("energy_joules_total", "joules", "counter")
"""The same scopes; estimated where only watts can be read."""
NOISE = Metric("noise_dba", "dB(A)", signed=True)
"""Labelled by where it is heard. A-weighted sound pressure, energetic mean of the second."""
NOISE_BAND = Metric("noise_band_dba", "dB(A)")
"""Half the width of what the level may really be."""
MICROPHONE_LEVEL = Metric("microphone_level_dbfs", "dBFS", signed=True)
"""Labelled by source: A-weighted, before any calibration; full-scale RMS is 0."""
SOURCE_AGE = Metric("source_age_seconds", "seconds")
"""Labelled by source: how old the newest reading is of what is asked outside the machine."""

# An engine (`launch:<id>`).
TOKENS_PER_SECOND = Metric("generation_tokens_per_second", "tokens/s")
PROMPT_TOKENS = Metric("prompt_tokens_total", "tokens", "counter")
GENERATED_TOKENS = Metric("generation_tokens_total", "tokens", "counter")
CACHED_TOKENS = Metric("cached_prompt_tokens_total", "tokens", "counter")
TIME_TO_FIRST_TOKEN = Metric("time_to_first_token_seconds", "seconds")
"""Median of the last 30 s; the histograms below hold every request."""
INTER_TOKEN_LATENCY = Metric("inter_token_latency_seconds", "seconds")
FIRST_TOKEN_BUCKET = Metric("time_to_first_token_seconds_bucket", "requests", "bucket")
FIRST_TOKEN_SUM = Metric("time_to_first_token_seconds_sum", "seconds", "counter")
INTER_TOKEN_BUCKET = Metric("inter_token_latency_seconds_bucket", "tokens", "bucket")
INTER_TOKEN_SUM = Metric("inter_token_latency_seconds_sum", "seconds", "counter")
QUEUE_BUCKET = Metric("queue_seconds_bucket", "requests", "bucket")
QUEUE_SUM = Metric("queue_seconds_sum", "seconds", "counter")
REQUEST_BUCKET = Metric("request_duration_seconds_bucket", "requests", "bucket")
REQUEST_SUM = Metric("request_duration_seconds_sum", "seconds", "counter")
FIRST_TOKEN_QUANTILE = Metric("time_to_first_token_quantile_seconds", "seconds")
"""Labelled `p50` or `p95`. Never sent: pages derive it, and the next two, from the bars above."""
INTER_TOKEN_QUANTILE = Metric("inter_token_latency_quantile_seconds", "seconds")
QUEUE_QUANTILE = Metric("queue_quantile_seconds", "seconds")
ENERGY_PER_TOKEN = Metric("box_energy_per_token_joules", "J/token")
"""What all boxes of a deployment drew for one token that it wrote; derived for pages too."""
REQUESTS_RUNNING = Metric("requests_running", "requests")
REQUESTS_WAITING = Metric("requests_waiting", "requests")
REQUESTS_FINISHED = Metric("requests_finished_total", "requests", "counter")
"""Labelled `stop`, `length`, `abort` or `error`."""
BATCH_SIZE = Metric("batch_size_rows", "rows")
"""Mean of the last second's steps."""
BATCH_CAP = Metric("batch_cap_rows", "rows")
KV_USAGE = Metric("kv_cache_usage_ratio", "ratio")
PREFIX_HITS = Metric("prefix_hit_ratio", "ratio")
"""Of the prompt tokens of the last 30 s, those that were not computed again."""
PREEMPTIONS = Metric("preemptions_total", "requests", "counter")
ENGINE_BUBBLE = Metric("pipeline_bubble_ratio", "ratio")
EXPERT_TOKENS = Metric("expert_tokens_total", "tokens", "counter")
"""Labelled by expert."""
ENGINE_RESTARTS = Metric("engine_epochs_total", "restarts", "counter")
ENGINE_BUSY = Metric("engine_busy_ratio", "ratio")
"""Share of the last second in which a step was on its way."""
PROGRESS_AGE = Metric("engine_progress_age_seconds", "seconds")
"""How long an engine with work in hand has got nothing done; 0 while it is idle or working."""

# One rank (`launch:<id>:rank<k>`).
STEP_SECONDS = Metric("step_seconds", "seconds")
COMMUNICATE_SECONDS = Metric("communicate_seconds", "seconds")
COMMUNICATE_SHARE = Metric("communicate_ratio", "ratio")
"""Of a step's time, the part a rank spent exchanging with the others, waiting included."""
BUBBLE = Metric("rank_bubble_ratio", "ratio")
"""Working time that a rank spends without work, waiting for others' stages or for its head."""
RANK_WEIGHTS = Metric("rank_weight_bytes", "bytes")
RANK_KV = Metric("rank_kv_bytes", "bytes")

METRICS: dict[str, Metric] = {
    metric.name: metric for metric in list(globals().values()) if isinstance(metric, Metric)
}
