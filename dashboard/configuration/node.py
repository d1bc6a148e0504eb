"""The settings of a node. `NODE` is the one declaration of each."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from dashboard.configuration.declared import Catalogue, Group, Setting, Value, Values

FOLDER = r"/[^\0\n]*"
ADDRESS = r"[A-Za-z0-9.:_-]+"
SECRET_NAME = r"[a-z0-9][a-z0-9._-]{0,62}"

NODE = Catalogue(
    groups=[
        Group(
            name="interfaces",
            label=_("Addresses"),
            note=_("Which of the node's addresses engines use; its agent says which there are."),
        ),
        Group(name="memory", label=_("Memory")),
        Group(name="power", label=_("Power")),
        Group(name="folders", label=_("Folders")),
        Group(
            name="environment",
            label=_("Engine environment"),
            note=_("What engine processes on this node find in their environment."),
        ),
    ],
    settings=[
        Setting(
            name="engine_address",
            kind="text",
            label=_("address of engines"),
            group="interfaces",
            default=None,
            optional=True,
            absent=_("as entered when the node was added"),
            pattern=ADDRESS,
            example="192.168.1.21",
            drivers=(),
            help=_("Where the panel and other nodes reach engines here."),
        ),
        Setting(
            name="cable_address",
            kind="text",
            label=_("address on the cable"),
            group="interfaces",
            default=None,
            optional=True,
            absent=_("as its agent found it"),
            pattern=ADDRESS,
            example="10.0.0.1",
            drivers=(),
            help=_("For the ranks alone, between two boxes; “none” has them use no cable."),
        ),
        Setting(
            name="memory_floor_mb",
            kind="whole",
            label=_("memory floor"),
            group="memory",
            default=1024,
            unit="MB",
            low=0,
            high=16_777_216,
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
            help=_("Of each accelerator, at all hours; quiet hours may ask for less."),
        ),
        Setting(
            name="model_folder",
            kind="text",
            label=_("folder of models"),
            group="folders",
            default=None,
            optional=True,
            absent=_("as on the panel's machine"),
            pattern=FOLDER,
            longest=500,
            example="/srv/models",
            drivers=(),
            help=_("Where this node has the model files, by the same names as in the catalogue."),
        ),
        Setting(
            name="cache_folder",
            kind="text",
            label=_("cache folder"),
            group="folders",
            default=None,
            optional=True,
            absent=_("the user's own"),
            pattern=FOLDER,
            longest=500,
            example="/var/cache/tandem",
            drivers=(),
            help=_("For compiled kernels and for what engines download (XDG_CACHE_HOME)."),
        ),
        Setting(
            name="hub_folder",
            kind="text",
            label=_("hub folder"),
            group="folders",
            default=None,
            optional=True,
            absent=_("inside the cache folder"),
            pattern=FOLDER,
            longest=500,
            example="/srv/huggingface",
            drivers=(),
            help=_("Where engines keep models of the Hugging Face hub (HF_HOME)."),
        ),
        Setting(
            name="hub_token",
            kind="text",
            label=_("hub token"),
            group="environment",
            default=None,
            optional=True,
            absent=_("none"),
            pattern=SECRET_NAME,
            example="hugging-face",
            secret=True,
            drivers=(),
            help=_("The name of a stored secret with which engines ask the hub (HF_TOKEN)."),
        ),
        Setting(
            name="hub_offline",
            kind="flag",
            label=_("no hub"),
            group="environment",
            default=False,
            drivers=(),
            help=_("Engines never ask the Hugging Face hub (HF_HUB_OFFLINE)."),
        ),
        Setting(
            name="https_proxy",
            kind="text",
            label=_("proxy"),
            group="environment",
            default=None,
            optional=True,
            absent=_("none"),
            pattern=r"https?://[^\s/@]+/?",
            example="http://proxy.example:3128",
            drivers=(),
            help=_("Through which engines reach the outside (HTTPS_PROXY); without a password."),
        ),
        Setting(
            name="proxy_secret",
            kind="text",
            label=_("proxy with a password"),
            group="environment",
            default=None,
            optional=True,
            absent=_("none"),
            pattern=SECRET_NAME,
            example="proxy",
            secret=True,
            drivers=(),
            help=_("The name of a stored secret that holds its whole address; wins over proxy."),
        ),
        Setting(
            name="no_proxy",
            kind="text",
            label=_("without the proxy"),
            group="environment",
            default=None,
            optional=True,
            absent=_("none"),
            pattern=r"[A-Za-z0-9.*:/_-]+(, ?[A-Za-z0-9.*:/_-]+)*",
            example="10.0.0.0/8, .example",
            drivers=(),
            help=_("Addresses that engines reach directly (NO_PROXY)."),
        ),
        Setting(
            name="thread_binding",
            kind="choice",
            label=_("threads stay on their core"),
            group="environment",
            default=None,
            optional=True,
            absent=_("as the system likes"),
            choices=[
                ("close", _("on neighbouring cores")),
                ("spread", _("spread over the cores")),
                ("false", _("never")),
            ],
            drivers=(),
            help=_("How OpenMP pins the threads of a rank (OMP_PROC_BIND)."),
        ),
        Setting(
            name="nccl_interface",
            kind="text",
            label=_("interface of collectives"),
            group="environment",
            default=None,
            optional=True,
            absent=_("chosen by the library"),
            pattern=r"=?[A-Za-z0-9][\w.-]*",
            example="enp1s0f0",
            drivers=(),
            help=_(
                "The network interface for NCCL and gloo (NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME)."
            ),
        ),
    ],
)

ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "cache_folder": ("XDG_CACHE_HOME",),
    "hub_folder": ("HF_HOME",),
    "hub_token": ("HF_TOKEN",),
    "hub_offline": ("HF_HUB_OFFLINE",),
    "https_proxy": ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"),
    "proxy_secret": ("HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"),
    "no_proxy": ("NO_PROXY", "no_proxy"),
    "thread_binding": ("OMP_PROC_BIND",),
    "nccl_interface": ("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
}
"""Settings that engine processes see as environment variables; a later one wins over an earlier."""


def variables(values: Values) -> dict[str, tuple[Setting, Value]]:
    """Each variable that is set, its setting and value: of a secret still the name."""
    complete = NODE.complete(values)
    found: dict[str, tuple[Setting, Value]] = {}
    for name, names in ENVIRONMENT.items():
        value = complete[name]
        if value not in (None, "", False):
            found |= dict.fromkeys(names, (NODE[name], value))
    return found


def cable_address(values: Values, found: str) -> str:
    """For the ranks alone: what was chosen, else what the node's agent found."""
    chosen = str(NODE.complete(values)["cable_address"] or "")
    return "" if chosen == "none" else chosen or found
