"""The settings of an engine. `ENGINE` is the one declaration of each."""

from typing import cast

from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Catalogue, Group, Setting, Values, Words
from dashboard.configuration.drivers import drivers_of
from engine.config import INT4_GROUPS, Device, Dtype, EngineConfig, KvDtype, ParallelPlan, Transport

DTYPE_CHOICES: list[tuple[str, Words]] = [
    ("fp32", _("fp32 (reference)")),
    ("bf16", "bf16"),
    ("int8", "int8 (W8A8)"),
    ("int4", "int4 (W4A8)"),
    ("fp8", "fp8 (e4m3)"),
]
KV_DTYPE_CHOICES: list[tuple[str, Words]] = [
    ("fp32", _("fp32 (exact)")),
    ("bf16", _("bf16 (half the size)")),
    ("int8", _("int8 (a quarter of the size)")),
    ("fp8", _("fp8 (a quarter of the size)")),
]
DEVICE_CHOICES: list[tuple[str, Words]] = [
    ("cpu", _("processor")),
    ("cuda", _("NVIDIA GPU (CUDA)")),
]
TRANSPORT_CHOICES: list[tuple[str, Words]] = [
    ("auto", _("automatic")),
    ("shm", _("shared memory (one host)")),
    ("tcp", "TCP"),
    ("gloo", _("gloo (torch.distributed)")),
    ("nccl", _("NCCL (between GPUs)")),
]

ENGINE = Catalogue(
    groups=[
        Group(
            name="split",
            label=_("How to split it"),
            note=_(
                "Tensor × pipeline × expert parallel is the number of ranks of one replica. Two "
                "boxes usually do best with 2 × 1 × 1."
            ),
        ),
        Group(name="numbers", label=_("Number types")),
        Group(name="limits", label=_("Limits")),
    ],
    settings=[
        Setting(
            name="tp",
            kind="whole",
            label=_("tensor parallel"),
            group="split",
            default=1,
            low=1,
            high=64,
            help=_("Ranks that share every layer."),
        ),
        Setting(
            name="pp",
            kind="whole",
            label=_("pipeline parallel"),
            group="split",
            default=1,
            low=1,
            high=64,
            help=_("Stages of consecutive layers."),
        ),
        Setting(
            name="ep",
            kind="whole",
            label=_("expert parallel"),
            group="split",
            default=1,
            low=1,
            high=64,
            help=_("Groups of ranks that hold different whole experts of every layer."),
        ),
        Setting(
            name="dp",
            kind="whole",
            label=_("replicas"),
            group="split",
            default=1,
            low=1,
            high=64,
            help=_("Copies of all that; a conversation stays with the one that remembers it."),
        ),
        Setting(
            name="rank_weights",
            kind="text",
            label=_("rank weights"),
            group="split",
            default=None,
            optional=True,
            absent=_("all alike"),
            pattern=r"\d{1,4}( ?: ?\d{1,4})*",
            example="3:2",
            help=_(
                "How much each rank carries, such as 3:2 where the first box is larger; empty for "
                "all alike."
            ),
        ),
        Setting(
            name="transport",
            kind="choice",
            label=_("links between ranks"),
            group="split",
            default="auto",
            choices=TRANSPORT_CHOICES,
            help=_(
                "How ranks exchange what they computed: through shared memory on one host, over "
                "TCP between hosts."
            ),
        ),
        Setting(
            name="device",
            kind="choice",
            label=_("device"),
            group="split",
            default="cpu",
            choices=DEVICE_CHOICES,
            help=_(
                "What ranks compute on. Each rank takes a GPU of its own, on nodes whose torch was "
                "built with CUDA."
            ),
        ),
        Setting(
            name="dtype",
            kind="choice",
            label=_("number type"),
            group="numbers",
            default="fp32",
            choices=DTYPE_CHOICES,
            help=_(
                "Of the weights; int8 and int4 multiply int8 activations. Fewer bits lose a little "
                "quality."
            ),
        ),
        Setting(
            name="int4_group",
            kind="choice",
            label=_("int4 group"),
            group="numbers",
            default=32,
            choices=[(columns, str(columns)) for columns in INT4_GROUPS],
            help=_(
                "Columns that share one scale, with int4 weights. Wider groups cost quality, most "
                "of all where the file has 4-bit weights already."
            ),
        ),
        Setting(
            name="kv_dtype",
            kind="choice",
            label=_("KV cache number type"),
            group="numbers",
            default="fp32",
            choices=KV_DTYPE_CHOICES,
            help=_("Fewer bits let longer or more conversations fit."),
        ),
        Setting(
            name="max_model_len",
            kind="whole",
            label=_("context length"),
            group="limits",
            default=None,
            optional=True,
            absent=_("the model's own limit"),
            unit=_("tokens"),
            low=64,
            high=10_000_000,
            help=_("In tokens; empty means the model's own limit."),
        ),
        Setting(
            name="kv_cache_tokens",
            kind="whole",
            label=_("KV cache"),
            group="limits",
            default=16384,
            unit=_("tokens"),
            low=64,
            high=2_000_000_000,
            help=_("In tokens, shared by all conversations."),
        ),
        Setting(
            name="max_batch_size",
            kind="whole",
            label=_("batch size"),
            group="limits",
            default=32,
            low=1,
            high=256,
            help=_("Most answers that are advanced in one step."),
        ),
        Setting(
            name="token_budget",
            kind="whole",
            label=_("token budget"),
            group="limits",
            default=256,
            unit=_("tokens"),
            low=16,
            high=65_536,
            help=_(
                "Most tokens computed in one step. More reads long prompts faster and makes "
                "answers that are under way wait longer."
            ),
        ),
        Setting(
            name="max_waiting",
            kind="whole",
            label=_("longest queue"),
            group="limits",
            default=512,
            low=1,
            high=100_000,
            applies="live",
            help=_("Requests that may wait; more are refused with 503."),
        ),
        Setting(
            name="target_itl_ms",
            kind="whole",
            label=_("target time per token"),
            group="limits",
            default=None,
            optional=True,
            absent=_("none"),
            unit="ms",
            low=1,
            high=60_000,
            applies="live",
            help=_(
                "In milliseconds. The batch shrinks while tokens take longer and grows while there "
                "is room; empty always fills it."
            ),
        ),
        Setting(
            name="threads_per_rank",
            kind="whole",
            label=_("threads per rank"),
            group="limits",
            default=1,
            low=1,
            high=256,
            help=_(
                "Processor cores that one rank may use. Ranks × threads on a box should not exceed "
                "its cores."
            ),
        ),
    ],
    drivers=drivers_of,
)


def plan_of(values: Values) -> ParallelPlan:
    """Raises PlanError when its numbers do not fit together."""
    complete = ENGINE.complete(values)
    weights = str(complete["rank_weights"] or "").replace(" ", "")
    degrees = ",".join(f"{name}={complete[name]}" for name in ("tp", "pp", "ep", "dp"))
    return ParallelPlan.parse(degrees + (f",weights={weights}" if weights else ""))


def engine_config_of(values: Values) -> EngineConfig:
    """Of one launch. Raises ConfigError when the settings do not fit together."""
    complete = ENGINE.complete(values)
    whole = {name: value for name, value in complete.items() if isinstance(value, int)}
    target = whole.get("target_itl_ms")
    return EngineConfig(
        plan=plan_of(values),
        dtype=cast(Dtype, complete["dtype"]),
        kv_dtype=cast(KvDtype, complete["kv_dtype"]),
        int4_group=whole["int4_group"],
        transport=cast(Transport, complete["transport"]),
        device=cast(Device, complete["device"]),
        max_model_len=whole.get("max_model_len"),
        max_batch_size=whole["max_batch_size"],
        token_budget=max(whole["token_budget"], whole["max_batch_size"]),
        kv_cache_tokens=whole["kv_cache_tokens"],
        target_itl=target / 1000 if target else None,
        threads_per_rank=whole["threads_per_rank"],
        max_waiting=whole["max_waiting"],
    )
