"""`python -m engine.agent --server URL`: join this machine to a Tandem fleet as a node."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from engine import logs
from engine.agent.firmware.system import boot_id
from engine.agent.home import STATE_VARIABLE, HomeLock, state_folder
from engine.agent.inventory import address_towards, take_inventory
from engine.agent.link import socket_url
from engine.agent.node import NodeAgent
from engine.agent.probes import NodeProbes
from engine.agent.roots import read_roots
from engine.drivers import DRIVERS
from engine.drivers.base import Driver
from engine.errors import ConfigError, EngineError

log = logging.getLogger("engine.agent")

TOKEN_VARIABLE = "TANDEM_NODE_TOKEN"
DISCOVER_SECONDS = 15.0
"""For the accelerators' drivers to say what there is; without any it takes no time."""


def main(arguments: list[str] | None = None, drivers: Mapping[str, Driver] = DRIVERS) -> int:
    """Exit code: 0 after an asked stop, 1 after a failure, 2 for a wrong call."""
    options = _parser().parse_args(arguments)
    try:
        logs.set_up(sys.stderr)
        socket_url(options.server)
        token = read_token(options)
        logs.hide(token)
        address = options.address or address_towards(options.server)
        folder = state_folder(options.state, token)
        probes = NodeProbes(folder, read_roots())
        lock = HomeLock(folder)
    except (EngineError, OSError) as error:
        print(f"engine.agent: {error}", file=sys.stderr)
        return 2
    found = probes.accelerators.discover(DISCOVER_SECONDS)
    inventory = take_inventory(
        address,
        link_address=options.link_address,
        accelerators=found,
        boot_id=boot_id(probes.roots),
    )
    agent = NodeAgent(
        options.server,
        token,
        inventory,
        folder,
        drivers,
        probes,
        allow_reboot=options.allow_reboot,
    )
    try:
        return asyncio.run(_serve(agent))
    finally:
        lock.release()


async def _serve(agent: NodeAgent) -> int:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    try:
        await agent.run(stop)
    except ExceptionGroup as failures:
        log.error("The agent failed; its engines wait for another.", exc_info=failures)
        return 1
    return 0


def read_token(options: argparse.Namespace) -> str:
    """From --token-file, --token or the environment; raises ConfigError when there is none."""
    inherited = os.environ.pop(TOKEN_VARIABLE, "")
    if options.token_file:
        token = Path(options.token_file).read_text().strip()
    else:
        token = (options.token or inherited).strip()
    if not token:
        raise ConfigError(
            f"This node has no token: set {TOKEN_VARIABLE} or give --token-file. "
            "The panel shows a node's token once, when the node is added."
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("The node token holds characters that no token has; copy it again.")
    return token


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m engine.agent", description=__doc__)
    parser.add_argument("--server", required=True, help="the panel's address, http://host:8000")
    parser.add_argument("--token-file", help="a file that holds this node's token")
    parser.add_argument(
        "--token",
        help=f"this node's token; seen by everyone on the machine, so rather a file "
        f"or {TOKEN_VARIABLE}",
    )
    parser.add_argument(
        "--address", help="the address other nodes reach this one at (default: towards the server)"
    )
    parser.add_argument(
        "--link-address",
        default="",
        help="this machine's address on the cable between the boxes, for the ranks alone",
    )
    parser.add_argument(
        "--state",
        help=f"a private folder for what outlives this agent (default: under {STATE_VARIABLE} or "
        "~/.local/state/tandem-agent); one agent a folder",
    )
    parser.add_argument(
        "--allow-reboot",
        action="store_true",
        help="let a firmware update of the panel restart this machine",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
