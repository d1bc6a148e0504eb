"""`python -m engine.generate` prints the answer and nothing else, or one sentence and fails."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.generate import parse

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


def generate(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "engine.generate", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=ENVIRONMENT,
    )


@pytest.mark.model
def test_the_text_alone_is_printed() -> None:
    question = "What is the capital of France?"
    process = generate("--prompt", question, "--max-tokens", "24", "--greedy", "--plan", "tp=2")
    text, log = process.communicate(timeout=120)
    assert process.returncode == 0, log
    assert text == "The capital of France is Paris.\n"
    assert "Rank 1 is ready" in log


@pytest.mark.model
def test_ctrl_c_leaves_no_process() -> None:
    with generate("--prompt", "Tell a story", "--max-tokens", "4000", "--plan", "pp=2") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1), "the first letter"
        process.send_signal(signal.SIGINT)
        # Both ranks hold this pipe: it ends when the last of them has.
        log = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert log.splitlines()[-1] == "Stopped."


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--plan", "tp=10"], "make tp × ep 9 or less"),
        (["--plan", "tp"], "write it as tp=2,pp=1"),
        (["--model", "/nowhere.gguf"], "Cannot open /nowhere.gguf"),
        (["--model", "/etc/passwd"], "not a GGUF file"),
    ],
)
def test_what_cannot_work_is_one_sentence(arguments: list[str], sentence: str) -> None:
    process = generate("--prompt", "x", *arguments)
    text, log = process.communicate(timeout=60)
    assert process.returncode == 1
    assert text == ""
    assert len(log.splitlines()) == 1, log
    assert sentence in log


@pytest.mark.parametrize(
    "arguments", [["--temperature", "-1"], ["--temperature", "nan"], ["--top-p", "0"]]
)
def test_numbers_out_of_range_are_refused_before_anything_starts(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--prompt", "x", *arguments])
