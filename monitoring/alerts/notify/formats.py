"""What each receiver is sent, after their public descriptions. Pure: messages in, bytes out.

Signatures: Feishu's bots take HMAC-SHA256 over nothing, keyed with the time and the secret;
DingTalk's over the time and the secret, keyed with the secret, in the address. Our own webhook
signs the time and the body, so that a copy cannot be sent again later.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote_plus

import msgspec

from monitoring.alerts.notify.message import Message

COLOURS = {"critical": "red", "warning": "orange", "note": "blue"}
SIGNATURE = "X-Tandem-Signature"
DELIVERY = "X-Tandem-Delivery"


@dataclass(frozen=True)
class Post:
    url: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


def webhook(message: Message, url: str, secret: str, key: str, now: float) -> Post:
    """JSON; `t=<Unix seconds>,v1=<hex of HMAC-SHA256 over "<t>.<body>">` when there is a secret."""
    body = msgspec.json.encode({"version": 1, "delivery": key, **msgspec.to_builtins(message)})
    headers = {DELIVERY: key, "Idempotency-Key": key}
    if secret:
        stamp = str(int(now))
        mac = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256)
        headers[SIGNATURE] = f"t={stamp},v1={mac.hexdigest()}"
    return Post(url, body, headers)


def slack(message: Message, url: str, secret: str, key: str, now: float) -> Post:
    lines = "\n".join(f"• {_slack_text(line)}" for line in message.lines)
    blocks: list[dict[str, object]] = [
        {"type": "header", "text": {"type": "plain_text", "text": message.title[:150]}}
    ]
    if lines:
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": lines[:2900]}})
    if message.url:
        link = {"type": "mrkdwn", "text": f"<{message.url}>"}
        blocks.append({"type": "context", "elements": [link]})
    text = _slack_text(message.title)
    return Post(url, msgspec.json.encode({"text": text, "blocks": blocks}))


def feishu(message: Message, url: str, secret: str, key: str, now: float) -> Post:
    elements: list[dict[str, object]] = [
        {"tag": "div", "text": {"tag": "plain_text", "content": line}} for line in message.lines
    ]
    if message.url:
        elements.append({"tag": "markdown", "content": f"[{message.url}]({message.url})"})
    content: dict[str, object] = {
        "msg_type": "interactive",
        "card": {
            "header": {
                "title": {"tag": "plain_text", "content": message.title},
                "template": _colour(message),
            },
            "elements": elements,
        },
    }
    if secret:
        stamp = str(int(now))
        mac = hmac.new(f"{stamp}\n{secret}".encode(), b"", hashlib.sha256)
        content |= {"timestamp": stamp, "sign": base64.b64encode(mac.digest()).decode()}
    return Post(url, msgspec.json.encode(content))


def dingtalk(message: Message, url: str, secret: str, key: str, now: float) -> Post:
    lines = "\n".join(f"- {line}" for line in message.lines)
    link = f"\n\n[{message.url}]({message.url})" if message.url else ""
    text = f"### {message.title}\n\n{lines}{link}"
    body = {"msgtype": "markdown", "markdown": {"title": message.title, "text": text}}
    if secret:
        stamp = str(round(now * 1000))
        mac = hmac.new(secret.encode(), f"{stamp}\n{secret}".encode(), hashlib.sha256)
        sign = quote_plus(base64.b64encode(mac.digest()))
        joint = "&" if "?" in url else "?"
        url = f"{url}{joint}timestamp={stamp}&sign={sign}"
    return Post(url, msgspec.json.encode(body))


FORMATS: dict[str, Callable[[Message, str, str, str, float], Post]] = {
    "webhook": webhook,
    "slack": slack,
    "feishu": feishu,
    "dingtalk": dingtalk,
}


class _Verdict(msgspec.Struct):
    """What chat services say in the body of an answer whose status is 200 all the same."""

    code: int = 0
    msg: str = ""
    errcode: int = 0
    errmsg: str = ""


def refusal(kind: str, status: int, body: bytes) -> str:
    """Why the receiver did not take it, in its own words; empty when it did."""
    words = in_words(body[:200])
    if not 200 <= status < 300:
        return f"{status} {words or _phrase(status)}".strip()
    if kind not in ("feishu", "dingtalk"):
        return ""
    try:
        verdict = msgspec.json.decode(body, type=_Verdict)
    except msgspec.MsgspecError:
        return words or "?"
    failed = verdict.code or verdict.errcode
    return f"{failed} {verdict.msg or verdict.errmsg}".strip() if failed else ""


def in_words(body: bytes) -> str:
    """What a receiver says that a person can read: of a page of markup nothing."""
    words = body.decode(errors="replace").strip()
    return "" if words.startswith("<") else words


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _colour(message: Message) -> str:
    return "green" if message.occasion == "resolved" else COLOURS[message.severity]


def _slack_text(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
