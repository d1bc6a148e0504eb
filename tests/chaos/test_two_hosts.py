"""Two hosts serve as one: a deployment across them answers, over their cable, and goes on writing
when one of its ranks is killed in the middle of an answer."""

import json
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.asking import Answer, Asker
from tests.chaos.fleet import Fleet
from tests.chaos.processes import send
from tests.chaos.references import question
from tests.chaos.waiting import wait_for
from tests.engine.bundled import bundled_tokenizer

pytestmark = [pytest.mark.stack, pytest.mark.model]

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "greedy_fp32.json").read_text())[0]
HIDDEN_BYTES = 576 * 4


def golden_question() -> dict[str, Any]:
    return question(GOLDEN["ids"], len(GOLDEN["tokens"]))


def golden_text() -> str:
    tokenizer = bundled_tokenizer()
    return tokenizer.decode(GOLDEN["tokens"])


def test_a_deployment_across_two_hosts_says_what_one_process_says(two_hosts: Fleet) -> None:
    before = [box.received() for box in two_hosts.office.boxes]
    answer = Asker(two_hosts.panel.url, two_hosts.panel.key).ask(golden_question())
    crossed = [
        box.received() - was for box, was in zip(two_hosts.office.boxes, before, strict=True)
    ]
    assert not answer.failure
    assert answer.text == golden_text()
    assert min(crossed) > len(GOLDEN["tokens"]) * HIDDEN_BYTES, "it did not use the cable"


@pytest.mark.parametrize("number", [0, 1])
def test_an_answer_goes_on_though_a_rank_is_killed_in_the_middle(
    two_hosts: Fleet, number: int
) -> None:
    pid = two_hosts.rank_pids(two_hosts.primary())[number]
    texts: list[str] = []
    asker = Asker(two_hosts.panel.url, two_hosts.panel.key, lambda: texts.append(""))
    answers: list[Answer] = []
    reader = threading.Thread(target=lambda: answers.append(asker.ask(golden_question())))
    reader.start()
    try:
        wait_for("the first words", lambda: len(texts) >= 5, 60)
        assert len(texts) < len(GOLDEN["tokens"]) / 2, "it was over before anything broke"
        send(pid, signal.SIGKILL)
    finally:
        reader.join(120)
    assert answers, "the stream never came to an end"
    assert not answers[0].failure
    assert answers[0].text == golden_text()
    assert pid not in two_hosts.rank_pids(two_hosts.primary())
