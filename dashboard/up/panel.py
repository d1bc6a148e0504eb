"""What `up` does to the panel's own data, with Django inside this process."""

import logging
import os
import secrets
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import django

if TYPE_CHECKING:
    from dashboard.models import Deployment

ADMIN = "admin"
FIRST_DEPLOYMENT = "smollm2"
NODES = {"node-a": "127.0.0.1", "node-b": "127.0.0.2"}


def load_django(log: Path) -> None:
    """Needs the servers' addresses in the environment. Log records go to a file, not the screen."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    handler = logging.FileHandler(log, mode="w")
    handler.setFormatter(logging.getLogger().handlers[0].formatter)
    logging.getLogger().handlers = [handler]


def migrate(progress: Callable[[str], None]) -> bool:
    """Bring the tables up to date; False when they were already."""
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if not plan:
        return False
    call_command("migrate", interactive=False, stdout=_AppliedCounter(len(plan), progress))
    return True


class _AppliedCounter:
    """Reads the migrate command's output for how far it is."""

    def __init__(self, total: int, progress: Callable[[str], None]) -> None:
        self._total = total
        self._progress = progress
        self._applied = 0

    def write(self, text: str) -> None:
        if "Applying " in text:
            self._applied += 1
            self._progress(f"{self._applied} of {self._total}")

    def flush(self) -> None:
        """Nothing is kept back."""

    def isatty(self) -> bool:
        return False


def ensure_admin(wanted: str) -> str:
    """The `wanted` password, or one made up for the first start; returns a made-up one, else ""."""
    from django.contrib.auth import get_user_model

    users = get_user_model().objects
    user = users.filter(username=ADMIN).first()
    if user is None:
        password = wanted or secrets.token_urlsafe(12)
        users.create_superuser(username=ADMIN, email="", password=password)
        return "" if wanted else password
    if wanted and not user.check_password(wanted):
        user.set_password(wanted)
        user.save(update_fields=["password"])
    return ""


def node_tokens(nodes: Mapping[str, str]) -> dict[str, str]:
    """A fresh token for each node; the agents of an earlier `up` can no longer sign in."""
    from dashboard import lifecycle
    from dashboard.models import Node

    tokens = {}
    for name, address in nodes.items():
        node = Node.objects.filter(name=name).first()
        if node is None:
            _, tokens[name] = lifecycle.create_node(name, address)
        else:
            tokens[name] = lifecycle.rotate_token(node, address, routine=True)
    return tokens


def catalogue_is_empty() -> bool:
    from dashboard.models import Model

    return not Model.objects.exists()


def import_and_deploy() -> None:
    """The bundled model, deployed over both local nodes; all of it or nothing."""
    from django.db import transaction

    from dashboard import catalogue, lifecycle
    from dashboard.models import Deployment

    with transaction.atomic():
        # The file calls itself by the name of a training run.
        model = catalogue.import_model(
            catalogue.bundled_model_path(), "smollm2-135m-instruct", "SmolLM2 135M Instruct"
        )
        deployment = Deployment.objects.create(
            name=FIRST_DEPLOYMENT,
            model=model,
            settings={"tp": len(NODES), "dtype": best_dtype()},
        )
        lifecycle.request_deploy(deployment, by=ADMIN)


def best_dtype() -> str:
    """int8 only where processors multiply it in one instruction. Elsewhere our own kernels are
    quicker in int8 too, but the bundled model is so small that rounding changes its answers: asked
    for the capital of France it is 0.09 of a logit from answering in French."""
    from engine.abilities import FAST_INT8, OWN_KERNELS
    from engine.agent.inventory import take_inventory

    fast = FAST_INT8 - {OWN_KERNELS}
    return "int8" if fast & set(take_inventory("").instruction_sets) else "fp32"


def wanted_names() -> list[str]:
    from dashboard.models import Deployment

    return list(Deployment.objects.filter(wanted=True).values_list("name", flat=True))


def nodes_online(nodes: Collection[str], since: datetime) -> bool:
    """Whether the agents have signed in since then; an earlier run leaves its rows behind."""
    from dashboard.choices import NodeStatus
    from dashboard.models import Node

    local = Node.objects.filter(name__in=nodes)
    return local.filter(status=NodeStatus.ONLINE, connected_at__gte=since).count() == len(nodes)


def resume(nodes: Collection[str]) -> None:
    """A new `up` means that every local engine has gone: start the wanted ones again at once."""
    from dashboard import lifecycle

    lifecycle.resume_on(nodes)


class DeploymentState(NamedTuple):
    starting: bool
    ready: bool
    progress: str
    reason: str


def deployment_state(name: str) -> DeploymentState:
    from dashboard.choices import DeploymentStatus
    from dashboard.models import Deployment

    deployment = Deployment.objects.filter(name=name).first()
    if deployment is None or not deployment.wanted:
        return DeploymentState(False, False, "", "it is no longer wanted")
    busy = (DeploymentStatus.STARTING, DeploymentStatus.RESTARTING)
    answering = (DeploymentStatus.READY, DeploymentStatus.RECOVERING, DeploymentStatus.DEGRADED)
    return DeploymentState(
        starting=deployment.status in busy,
        ready=deployment.status in answering,
        progress=_progress(deployment),
        reason=str(deployment.reason) or deployment.get_status_display(),
    )


def _progress(deployment: "Deployment") -> str:
    """`over node-a and node-b (tp=2): rank 0 loading 63 %, rank 1 ready`."""
    replica = deployment.live_replica
    ranks = list(replica.ranks.select_related("node")) if replica else []
    if not ranks:
        return ""
    nodes = " and ".join(dict.fromkeys(rank.node.name for rank in ranks))
    plan = f"tp={deployment.tp}" + (f", pp={deployment.pp}" if deployment.pp > 1 else "")
    return f"over {nodes} ({plan}): " + ", ".join(
        f"rank {rank.rank} {rank.status}"
        + (f" {rank.progress * 100:.0f} %" if rank.progress is not None else "")
        for rank in ranks
    )
