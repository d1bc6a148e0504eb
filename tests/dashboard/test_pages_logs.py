"""The log page finds lines, says where they come from, and a link to it shows the same."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import LogLine, Node
from dashboard.views.monitor import logs as page
from tests.dashboard.pages_cast import body, make_launch, make_node, make_smol, operator, viewer

pytestmark = pytest.mark.django_db
__all__ = ["operator", "viewer"]


def say(text: str, node: Node | None = None, source: str = "agent", **fields: object) -> LogLine:
    return LogLine.objects.create(text=text, node=node, source=source, **fields)


def texts(client: Client, **query: object) -> list[str]:
    html = body(client, f"/monitor/logs/?{urlencode(query)}")
    found = re.findall(r'<span class="logs-text">(.*?)</span></li>', html, re.DOTALL)
    return [re.sub(r"</?mark>", "", text) for text in found]


def test_newest_lines_come_first_and_a_visitor_may_read(viewer: Client) -> None:
    for number in range(3):
        say(f"line {number}")
    assert texts(viewer) == ["line 2", "line 1", "line 0"]
    assert Client().get("/monitor/logs/").status_code == 302


def test_each_field_narrows(viewer: Client) -> None:
    one, two = make_node("box-1"), make_node("box-2")
    make_launch(make_smol(), one)
    say("from the kernel", one, "kernel", level="error")
    say("from the agent", two, "agent", level="warning")
    say("from the head", one, "head", launch="launch-smol", request="req-7")
    say("from a rank", two, "rank1", launch="launch-smol", level="info")
    assert texts(viewer, node="box-1") == ["from the head", "from the kernel"]
    assert texts(viewer, deployment="smol") == ["from a rank", "from the head"]
    assert texts(viewer, source="rank") == ["from a rank"]
    assert texts(viewer, level="warning") == ["from the agent", "from the kernel"]
    assert texts(viewer, level="error") == ["from the kernel"]
    assert texts(viewer, q="THE HEAD") == ["from the head"]
    assert texts(viewer, q="req-7") == ["from the head"]
    assert texts(viewer, q="nothing of it") == []


def test_a_link_with_a_time_range_shows_it_and_the_form_says_so(viewer: Client) -> None:
    old, new = say("old"), say("new")
    now = timezone.now()
    LogLine.objects.filter(pk=old.pk).update(at=now - timedelta(hours=2))
    LogLine.objects.filter(pk=new.pk).update(at=now - timedelta(minutes=1))
    since = (now - timedelta(hours=1)).timestamp()
    until = now - timedelta(hours=1)
    assert texts(viewer, **{"from": since}) == ["new"]
    assert texts(viewer, end=until.isoformat()) == ["old"]
    html = body(viewer, f"/monitor/logs/?from={since}")
    shown = datetime.fromtimestamp(since, UTC).strftime("%Y-%m-%dT%H:%M")
    assert f'value="{shown}"' in html


@pytest.mark.parametrize("query", ["begin=yesterday", "from=1e99", "node=nowhere", "level=loud"])
def test_what_cannot_be_searched_for_is_said(viewer: Client, query: str) -> None:
    answer = viewer.get(f"/monitor/logs/?{query}")
    assert answer.status_code == 422
    assert 'role="alert"' in answer.content.decode()


def test_what_was_searched_for_is_marked_and_markup_is_text(viewer: Client) -> None:
    say("<b>Bold</b> & <script>alert(1)</script>")
    html = body(viewer, "/monitor/logs/?q=bold")
    assert "&lt;b&gt;<mark>Bold</mark>&lt;/b&gt; &amp; &lt;script&gt;" in html
    assert "<script>alert" not in html


def test_older_lines_are_a_page_away(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "PAGE", 2)
    for number in range(5):
        say(f"line {number}")
    html = body(viewer, "/monitor/logs/?source=agent")
    (older,) = re.findall(r"before=(\d+)", html)
    assert texts(viewer, source="agent", before=older) == ["line 2", "line 1"]
    assert f"?source=agent&amp;before={older}" in html


def test_following_gets_only_what_is_new(viewer: Client) -> None:
    first = say("before")
    say("fresh")
    html = body(viewer, f"/monitor/logs/?after={first.pk}")
    assert "fresh" in html
    assert "before" not in html
    assert "<html" not in html


def test_the_same_lines_can_be_taken_along_as_text(viewer: Client) -> None:
    node = make_node("box-1")
    say("one", node, "kernel", level="error")
    say("two\nlines", None, "job")
    answer = viewer.get("/monitor/logs/download/")
    content = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]
    first, second, third = content.splitlines()
    assert re.fullmatch(r"\d{4}-\S+Z box-1 - kernel error one", first)
    assert second.endswith("- - job - two")
    assert third == "    lines"
    assert answer["Content-Disposition"] == 'attachment; filename="tandem-log.txt"'
    only = viewer.get("/monitor/logs/download/?q=two")
    assert b"one" not in b"".join(only.streaming_content)  # type: ignore[attr-defined]


def test_nothing_logged_yet_is_said(viewer: Client) -> None:
    assert "Nothing has been logged yet" in body(viewer, "/monitor/logs/")
    assert "No line matches" in body(viewer, "/monitor/logs/?q=x")


def test_a_node_and_a_deployment_link_to_their_own_lines(viewer: Client) -> None:
    node = make_node("box-1")
    make_launch(make_smol(), node)
    assert 'href="/monitor/logs/?node=box-1"' in body(viewer, "/nodes/box-1/")
    assert 'href="/monitor/logs/?deployment=smol"' in body(viewer, "/deployments/smol/")
