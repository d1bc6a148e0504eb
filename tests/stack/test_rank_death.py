"""A rank that is killed: the page says why, the deployment restarts by itself and answers again."""

import time

import openai
import psutil
import pytest

from tests.stack.conftest import Stack, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.model]


def answer(client: openai.OpenAI) -> str | None:
    reply = client.chat.completions.create(
        model="smollm2",
        messages=[{"role": "user", "content": "What is the capital of France?"}],
        max_tokens=8,
        temperature=0,
    )
    return reply.choices[0].message.content


def answer_or_none(client: openai.OpenAI) -> str | None:
    try:
        return answer(client)
    except openai.APIError:
        return None


def rank_pids(stack: Stack) -> set[int]:
    """As the panel knows them; spares that wait beside them are nobody's rank."""
    pids = stack.manage(
        "shell",
        "--no-imports",
        "--command",
        "from dashboard.models import Rank\n"
        "for rank in Rank.objects.filter(replica__ended_at=None): print(rank.pid or '')",
    )
    return {int(word) for word in pids.split() if word.isdecimal()}


def test_a_killed_rank_comes_back_by_itself(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    with openai.OpenAI(
        base_url=f"{stack.base_url}/v1", api_key=stack.api_key(), max_retries=0, timeout=60
    ) as client:
        before = answer(client)
        pids = rank_pids(stack)
        assert len(pids) == 2
        killed = time.monotonic()
        psutil.Process(min(pids)).kill()
        after = wait_for("an answer", lambda: answer_or_none(client), 90)
        seconds = time.monotonic() - killed
        wait_for("an event that says why", lambda: killed_event(stack), 60)
        wait_for("all new ranks", lambda: len(rank_pids(stack) - pids) == 2, 60)
    with capsys.disabled():
        print(f"\nanswering again {seconds:.1f} s after kill -9 of a rank")
    assert after == before


def killed_event(stack: Stack) -> str:
    """The newest words about the death, as the deployment's page shows them."""
    texts = stack.manage(
        "shell",
        "--no-imports",
        "--command",
        "from dashboard.models import Event\n"
        "for event in Event.objects.filter(deployment__name='smollm2')[:20]: print(event.text)",
    )
    told = ("SIGKILL", "has gone", "is gone", "connection")  # by its agent, or by its head
    return next((line for line in texts.splitlines() if any(word in line for word in told)), "")
