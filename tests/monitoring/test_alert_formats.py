"""What Slack, Feishu, DingTalk and a webhook are sent, and how their answers are read."""

import base64
import hashlib
import hmac
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from monitoring.alerts.notify.formats import FORMATS, SIGNATURE, Post, refusal
from monitoring.alerts.notify.message import Message

NOW = 1_764_500_000.25
MESSAGE = Message(
    occasion="opened",
    severity="critical",
    title="[Critical] Silent node · box-1",
    lines=["Silent node · box-1: 61 s (limit 15 s)", "a < b & c"],
    incident=7,
    about="box-1",
    opened="2026-11-30T12:00:00+00:00",
    at="2026-11-30T12:00:05+00:00",
    url="https://tandem.example/monitor/incidents/7/",
)


def made(kind: str, secret: str = "") -> Post:
    return FORMATS[kind](MESSAGE, "https://receiver.example/hook?a=1", secret, "key-1", NOW)


def test_a_webhook_gets_everything_as_json_and_knows_a_message_that_comes_twice() -> None:
    post = made("webhook")
    told = json.loads(post.body)
    assert (told["delivery"], told["incident"], told["severity"]) == ("key-1", 7, "critical")
    assert post.headers["Idempotency-Key"] == post.headers["X-Tandem-Delivery"] == "key-1"
    assert SIGNATURE not in post.headers


def test_a_webhooks_signature_covers_the_time_and_the_body() -> None:
    post = made("webhook", "s3cret")
    stamp, mac = (part.partition("=")[2] for part in post.headers[SIGNATURE].split(","))
    signed = hmac.new(b"s3cret", stamp.encode() + b"." + post.body, hashlib.sha256)
    assert stamp == "1764500000"
    assert hmac.compare_digest(mac, signed.hexdigest())


def test_slack_gets_blocks_whose_text_cannot_become_markup() -> None:
    told = json.loads(made("slack").body)
    assert told["blocks"][0]["text"] == {"type": "plain_text", "text": MESSAGE.title}
    assert "a &lt; b &amp; c" in told["blocks"][1]["text"]["text"]
    assert told["text"] == MESSAGE.title


def test_feishus_signature_is_keyed_with_time_and_secret() -> None:
    told = json.loads(made("feishu", "s3cret").body)
    key = f"{told['timestamp']}\ns3cret".encode()
    assert told["sign"] == base64.b64encode(hmac.new(key, b"", hashlib.sha256).digest()).decode()
    assert told["msg_type"] == "interactive"
    assert told["card"]["header"]["title"]["content"] == MESSAGE.title
    assert told["card"]["header"]["template"] == "red"


def test_without_a_secret_feishu_is_sent_no_signature() -> None:
    assert "sign" not in json.loads(made("feishu").body)


def test_dingtalks_signature_stands_in_the_address() -> None:
    post = made("dingtalk", "SECabc")
    query = parse_qs(urlsplit(post.url).query)
    stamp = query["timestamp"][0]
    mac = hmac.new(b"SECabc", f"{stamp}\nSECabc".encode(), hashlib.sha256).digest()
    assert query["sign"] == [base64.b64encode(mac).decode()]
    assert (query["a"], stamp) == (["1"], "1764500000250")
    told = json.loads(post.body)
    assert told["msgtype"] == "markdown"
    assert MESSAGE.title in told["markdown"]["text"]


@pytest.mark.parametrize(
    ("kind", "status", "body", "why"),
    [
        ("slack", 200, b"ok", ""),
        ("slack", 403, b"invalid_token", "403 invalid_token"),
        ("webhook", 204, b"", ""),
        ("webhook", 500, b"boom", "500 boom"),
        ("feishu", 200, b'{"code":0,"msg":"success"}', ""),
        ("feishu", 200, b'{"StatusCode":0,"StatusMessage":"success"}', ""),
        ("feishu", 200, b'{"code":19021,"msg":"sign match fail"}', "19021 sign match fail"),
        ("dingtalk", 200, b'{"errcode":0,"errmsg":"ok"}', ""),
        ("dingtalk", 200, b'{"errcode":310000,"errmsg":"sign not match"}', "310000 sign not match"),
        ("dingtalk", 200, b"<html>", "?"),
        ("webhook", 404, b"<!doctype html> <html lang=en>", "404 Not Found"),
        ("webhook", 599, b" <html>", "599"),
    ],
)
def test_an_answer_of_200_may_be_a_refusal_all_the_same(
    kind: str, status: int, body: bytes, why: str
) -> None:
    assert refusal(kind, status, body) == why
