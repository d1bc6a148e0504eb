"""Log lines: one JSON object each where that is asked for, and no secret in any."""

import io
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine import logs
from engine.agent.own_log import OwnLog
from engine.errors import ConfigError


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was afterwards."""
    logger = logging.getLogger()
    handlers, level = logger.handlers[:], logger.level
    about, hidden = dict(logs._about), set(logs._hidden)
    yield logger
    logger.handlers[:], logger.level = handlers, level
    logs._about.clear()
    logs._about.update(about)
    logs._hidden.clear()
    logs._hidden.update(hidden)


def set_up(monkeypatch: pytest.MonkeyPatch, wanted: str) -> io.StringIO:
    monkeypatch.setenv("TANDEM_LOG_FORMAT", wanted)
    stream = io.StringIO()
    logs.set_up(stream)
    return stream


def test_json_is_one_object_a_line_with_what_is_known(
    monkeypatch: pytest.MonkeyPatch, root: logging.Logger
) -> None:
    stream = set_up(monkeypatch, "json")
    logs.about(launch="l1", rank=1)
    logging.getLogger("engine.test").warning("two\nlines", extra={"request_id": "abc"})
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert told.pop("time").endswith("Z")
    assert told == {
        "level": "warning",
        "logger": "engine.test",
        "message": "two\nlines",
        "launch": "l1",
        "rank": 1,
        "request_id": "abc",
    }


def test_a_traceback_stays_in_its_line(
    monkeypatch: pytest.MonkeyPatch, root: logging.Logger
) -> None:
    stream = set_up(monkeypatch, "json")
    try:
        raise ValueError("Bearer abcdefgh12345678")
    except ValueError:
        logging.getLogger("engine.test").exception("it failed")
    (line,) = stream.getvalue().splitlines()
    told = json.loads(line)
    assert "ValueError: Bearer ***" in told["exception"]
    assert (told["message"], told["level"]) == ("it failed", "error")


def test_the_default_is_text(monkeypatch: pytest.MonkeyPatch, root: logging.Logger) -> None:
    stream = set_up(monkeypatch, "")
    logging.getLogger("engine.test").warning("plain words")
    assert stream.getvalue().endswith("WARNING plain words\n")


def test_any_other_format_is_refused_with_a_sentence() -> None:
    with pytest.raises(ConfigError, match="TANDEM_LOG_FORMAT must be text or json, not 'xml'"):
        logs.wanted_format({"TANDEM_LOG_FORMAT": "xml"})


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("key sk-tdm-AbCdEf0123456789_- used", "key sk-tdm-*** used"),
        ("node tdn_abcdefghijklmnop came", "node tdn_*** came"),
        ("Authorization: Bearer abc.def-ghi=", "Authorization: Bearer ***"),
        (
            "postgresql://tandem:hunter2@db.example:5432/tandem",
            "postgresql://tandem:***@db.example:5432/tandem",
        ),
        ("redis://:longpassword@valkey:6379/0", "redis://:***@valkey:6379/0"),
        ('{"password": "horse-battery"}', '{"password": "***"}'),
        ("api_key=0123456789abcdef&x=1", "api_key=***&x=1"),
        ("launch_token: 0123456789abcdef", "launch_token: ***"),
        ("Time to first token: 0.25 s", "Time to first token: 0.25 s"),
        ("GET http://10.0.0.1:8000/v1 took 2 s", "GET http://10.0.0.1:8000/v1 took 2 s"),
    ],
)
def test_secrets_are_taken_out_and_words_are_left(text: str, safe: str) -> None:
    assert logs.redact(text) == safe


@pytest.mark.parametrize("again", ["a-", "token-", "://a:", "secret='", "bearer "])
def test_no_line_costs_more_than_its_length(again: str) -> None:
    """With a step for each pair of characters this would take hours."""
    text = again * 50_000
    assert len(logs.redact(text)) == len(text)


def test_a_secret_that_was_named_never_appears(
    monkeypatch: pytest.MonkeyPatch, root: logging.Logger
) -> None:
    secret = "zq81-launch-secret"
    logs.hide(secret)
    for wanted in ("text", "json"):
        stream = set_up(monkeypatch, wanted)
        logging.getLogger("engine.test").warning("it was %s.", secret)
        assert secret not in stream.getvalue()


@given(st.text(max_size=200))
def test_every_text_can_be_logged_and_read_back(text: str) -> None:
    line = logs.encode_line(text, level="info", logger="x")
    assert "\n" not in line
    assert logs.read_line(line).text == logs.redact(text)


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("2026-11-30 10:00:00,123 ERROR something broke", "error"),
        ("[rank0] WARN: slow", "warning"),
        ("Traceback (most recent call last):", "error"),
        ("err: NVRM: Xid (PCI:0000:01:00): 79", "error"),
        ("warning: (records of the kernel's log were lost)", "warning"),
        ("The error: it was none.", ""),
        ("Rank 0 is ready after 3.1 s.", ""),
        ("{not json", ""),
        ('{"other": "object"}', ""),
    ],
)
def test_a_level_is_what_the_line_says_and_nothing_else(line: str, level: str) -> None:
    assert logs.read_line(line) == logs.Read(line, level)  # type: ignore[arg-type]


def test_a_rank_speaks_json_too() -> None:
    program = (
        "from engine import logs; from engine.rank.lifeline import say; "
        "logs.about(launch='l1', rank=0); logs.hide('the-launch-token'); "
        "say('Rank 0 got the-launch-token.')"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"TANDEM_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    told = json.loads(done.stdout)
    assert (told["message"], told["rank"]) == ("Rank 0 got ***.", 0)
    assert (told["logger"], told["launch"]) == ("engine.rank", "l1")


def test_an_agents_own_lines_are_sent_with_their_level() -> None:
    log = OwnLog()
    logger = logging.getLogger("engine.agent.test")
    logger.addHandler(log)
    logger.error("The agent met %s.", "something")
    logger.removeHandler(log)
    (batch,) = log.take()
    assert (batch.key, batch.launch) == ("agent", "")
    (read,) = map(logs.read_line, batch.lines)
    assert (read.text, read.level) == ("The agent met something.", "error")
    assert list(log.take()) == []
