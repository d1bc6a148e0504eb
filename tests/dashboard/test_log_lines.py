"""Lines of engines, agents and kernels are kept with where they came from, and without secrets."""

import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard import lifecycle
from dashboard.consumers.loglines import keep_lines
from dashboard.models import LogLine
from engine.logs import encode_line
from engine.protocol.agent import LogLines
from tests.dashboard.pages_cast import make_launch, make_node, make_smol

pytestmark = pytest.mark.django_db


def test_lines_of_a_nodes_kernel_and_agent_are_kept() -> None:
    node = make_node("box-1")
    keep_lines(node.pk, LogLines(key="kernel", launch="", lines=["err: Xid 79"]))
    own = encode_line("The link is lost.", level="warning", logger="engine.agent")
    keep_lines(node.pk, LogLines(key="agent", launch="", lines=[own]))
    kept = LogLine.objects.values_list("node__name", "source", "level", "text")
    assert list(kept) == [
        ("box-1", "kernel", "error", "err: Xid 79"),
        ("box-1", "agent", "warning", "The link is lost."),
    ]


def test_an_engines_json_lines_are_kept_as_their_words() -> None:
    node = make_node("box-1")
    make_launch(make_smol(), node)
    line = encode_line("It answers.", level="info", own={"request_id": "req-7"})
    keep_lines(node.pk, LogLines(key="x:head", launch="launch-smol", lines=[line, "plain"]))
    first, second = LogLine.objects.all()
    assert (first.node, first.source, first.text) == (node, "head", "It answers.")
    assert (first.level, first.request) == ("info", "req-7")
    assert (second.level, second.text) == ("", "plain")


def test_what_belongs_to_nobody_is_dropped() -> None:
    node = make_node("box-1")
    keep_lines(node.pk, LogLines(key="other", launch="", lines=["x"]))
    keep_lines(node.pk, LogLines(key="l:head", launch="nothing", lines=["x"]))
    assert not LogLine.objects.exists()


def test_a_secret_that_an_engine_prints_is_not_stored() -> None:
    node = make_node("box-1")
    line = "Authorization: Bearer abcdefghijklmnop"
    keep_lines(node.pk, LogLines(key="kernel", launch="", lines=[line]))
    assert LogLine.objects.get().text == "Authorization: Bearer ***"


def test_old_lines_and_the_oldest_of_too_many_go(monkeypatch: pytest.MonkeyPatch) -> None:
    node = make_node("box-1")
    monkeypatch.setattr(sys.modules["dashboard.lifecycle.reconcile"], "LOG_ROWS", 3)
    keep_lines(node.pk, LogLines(key="agent", launch="", lines=[str(n) for n in range(6)]))
    newest = LogLine.objects.latest("pk")
    LogLine.objects.filter(pk=newest.pk).update(at=timezone.now() - timedelta(days=8))
    lifecycle.prune_log()
    assert [line.text for line in LogLine.objects.all()] == ["2", "3", "4"]
