"""`manage.py simulate_fleet --nodes 200 --devices 8`: boxes that are not there, to try things."""

import asyncio
import signal
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from dashboard import lifecycle
from dashboard.models import Node
from dashboard.up.options import Options
from engine.agent.link import socket_url
from engine.agent.simulation.fleet import Plan, simulate
from engine.errors import ProtocolError

PREFIX = "sim-"
MOST_NODES, MOST_DEVICES = 500, 16


class Command(BaseCommand):
    help = (
        "Add made-up nodes and send readings for them, over the agents' own protocol, until it is "
        "stopped. Every page says that they are simulated, and nothing is ever placed on them."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--nodes", type=int, default=2)
        parser.add_argument("--devices", type=int, default=8, help="accelerators in each")
        parser.add_argument(
            "--server", help="where the panel is; the one that runs here unless set"
        )
        parser.add_argument("--seed", type=int, default=1, help="the same one, the same fleet")
        parser.add_argument("--faults", type=float, default=2.0, help="a node and day")
        parser.add_argument("--history", type=float, default=0.0, help="hours to tell of at first")
        parser.add_argument("--seconds", type=float, help="stop by itself after so long")
        parser.add_argument("--remove", action="store_true", help="take them out of the fleet")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["remove"]:
            self._remove()
            return
        plan = self._plan(options)
        count = options["nodes"]
        if not 1 <= count <= MOST_NODES:
            raise CommandError(f"--nodes must be from 1 to {MOST_NODES}, not {count}.")
        tokens = [_join(f"{PREFIX}{number:03d}") for number in range(1, count + 1)]
        self.stdout.write(f"{count} simulated nodes report to {plan.server}. Ctrl+C ends it.")
        asyncio.run(_run(plan, tokens, options["seconds"]))

    def _plan(self, options: dict[str, Any]) -> Plan:
        if not 0 <= options["devices"] <= MOST_DEVICES:
            raise CommandError(f"--devices must be from 0 to {MOST_DEVICES}.")
        if not 0 <= options["history"] <= 24 * 7 or options["faults"] < 0:
            raise CommandError("--history must be from 0 to 168 hours, --faults not negative.")
        server = options["server"] or Options.from_environment(settings.BASE_DIR).url
        try:
            socket_url(server)
        except ProtocolError as error:
            raise CommandError(f"--server: {error}") from error
        return Plan(
            server=server,
            devices=options["devices"],
            seed=options["seed"],
            faults_per_day=options["faults"],
            history_seconds=options["history"] * 3600.0,
        )

    def _remove(self) -> None:
        nodes = Node.objects.filter(name__startswith=PREFIX, inventory__simulated=True)
        for node in nodes:
            lifecycle.remove_node(node, "simulate_fleet")
        self.stdout.write("The simulated nodes are gone.")


def _join(name: str) -> tuple[str, str]:
    """The node's name and a fresh token; a real node of that name is left alone."""
    node = Node.objects.filter(name=name).first()
    if node is None:
        node, token = lifecycle.create_node(name, "127.0.0.1")
        lifecycle.set_schedulable(node, False, "simulate_fleet")
        return name, token
    if node.hardware is not None and not node.hardware.simulated:
        raise CommandError(f"{name} is a real node; rename it first.")
    return name, lifecycle.rotate_token(node, routine=True)


async def _run(plan: Plan, tokens: list[tuple[str, str]], seconds: float | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    if seconds is not None:
        loop.call_later(seconds, stop.set)
    await simulate(plan, tokens, stop)
