"""Peers live in interpreters of their own, which have nothing of ours."""

import ast
import sys
from pathlib import Path

import pytest

from engine.bench.compare import players
from engine.bench.compare.entrants import OURS, PEERS, entrants
from engine.errors import ConfigError

FOLDER = Path(players.__file__).parent
OWN = {"tandem.py", "machine.py"}
"""Run by our interpreter."""


def imported(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add(node.module or "")
    return found


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_a_peers_module_needs_the_peer_and_python_alone(path: Path) -> None:
    if path.name in OWN:
        return
    brought = {"hf.py": {"torch", "transformers"}, "llamacpp.py": {"llama_cpp", "numpy"}}
    allowed = brought.get(path.name, {"vllm", "torch"} if path.name == "vllm.py" else set())
    for name in imported(path):
        top = name.partition(".")[0]
        ours = name.startswith("engine.bench.compare.players")
        assert ours or top in allowed or top in sys.stdlib_module_names, name


def test_a_peer_that_is_not_installed_is_refused_in_one_sentence() -> None:
    with pytest.raises(ConfigError) as caught:
        entrants([], ["llamacpp"], {}, {})
    assert str(caught.value).startswith("The peer llamacpp is not there: ")
    assert "--peer-python llamacpp=PATH" in str(caught.value)


def test_an_interpreter_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be run with"):
        entrants([], ["hf"], {"hf": str(tmp_path / "python")}, {})


def test_nobody_is_set_who_does_not_exist() -> None:
    with pytest.raises(ConfigError, match="Nobody is called 'llama'"):
        entrants([], [], {}, {"llama": {"dtype": "int8"}})


def test_settings_replace_our_own_defaults() -> None:
    (ours,) = entrants(["tandem-int8"], [], {}, {"tandem-int8": {"kv_dtype": "bf16"}})
    assert ours.settings == OURS["tandem-int8"] | {"kv_dtype": "bf16"}
    assert set(PEERS) == {"hf", "llamacpp", "vllm"}
