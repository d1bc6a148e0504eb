"""The settings of a node. `NODE` is the one declaration of each."""

from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Catalogue, Group, Setting

NODE = Catalogue(
    groups=[
        Group(name="memory", label=_("Memory")),
        Group(name="power", label=_("Power")),
    ],
    settings=[
        Setting(
            name="memory_floor_mb",
            kind="whole",
            label=_("memory floor"),
            group="memory",
            default=1024,
            unit="MB",
            low=0,
            high=16_777_216,
            applies="live",
            drivers=(),
            help=_("Megabytes that engines leave free here."),
        ),
        Setting(
            name="power_cap_watts",
            kind="number",
            label=_("power cap"),
            group="power",
            default=None,
            optional=True,
            absent=_("none"),
            unit="W",
            low=10,
            high=100_000,
            applies="live",
            drivers=(),
            help=_(
                "Of each accelerator. Where its driver does not allow it, the batch is held down "
                "instead."
            ),
        ),
    ],
)
