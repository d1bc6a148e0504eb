"""Many browsers that follow live telemetry, and how late it reaches them.

`python -m tests.load.followers --url http://127.0.0.1:8000 --user admin --password … --clients 100`

A frame's lag is the time from the instant of its readings to its arrival here; the machine that
runs this must have the panel's time. Of the clients, `--fleet` follow the fleet and its grid, the
others a node each.
"""

import argparse
import asyncio
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

OPEN_SECONDS = 20.0
WARM_UP_SECONDS = 3.0
LOOK_SECONDS = 3.0
GRID = "gpu_utilization_ratio"
COOKIE = "tandem_session"


@dataclass
class Follower:
    scope: str
    id: int | None
    lags: list[float] = field(default_factory=list)
    frames: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    size: int = 0
    changed: int = 0
    missed: int = 0
    """Seconds of a topic that were passed over between two of its frames."""
    grids: list[float] = field(default_factory=list)
    nodes: set[int] = field(default_factory=set)
    ended: str = ""
    _topics: dict[int, str] = field(default_factory=dict)
    _last: dict[str, float] = field(default_factory=dict)

    async def follow(self, url: str, cookie: str, until: float, since: float) -> None:
        headers = {"Cookie": f"{COOKIE}={cookie}", "Origin": _origin(url)}
        try:
            async with (
                asyncio.timeout_at(until),
                connect(
                    f"{url.replace('http', 'ws', 1)}/ws/telemetry?lang=en",
                    additional_headers=headers,
                    open_timeout=OPEN_SECONDS,
                    max_size=None,
                    proxy=None,
                ) as socket,
            ):
                asked: dict[str, Any] = {"subscribe": {"scope": self.scope, "id": self.id}}
                if self.scope == "fleet":
                    asked["grid"] = GRID
                await socket.send(msgspec.json.encode(asked).decode())
                loop = asyncio.get_running_loop()
                async for message in socket:
                    arrived = time.time()
                    self._hear(message, arrived, counts=loop.time() >= since)
        except TimeoutError:
            return
        except (OSError, ConnectionClosed) as error:
            self.ended = str(error)

    def _hear(self, payload: str | bytes, arrived: float, *, counts: bool) -> None:
        message = msgspec.json.decode(payload)
        self.messages += counts
        self.size += len(payload) if counts else 0
        self.changed += counts and "changed" in message
        for layout in message.get("layouts", []):
            self._topics[layout["n"]] = layout["topic"]
        for number, at, _values in message.get("frames", []):
            self._frame(self._topics[number], at, arrived, counts=counts)
        if "grid" in message and counts:
            self.grids.append(arrived - message["grid"]["at"])
            self.nodes.update(node for node, _index, _value in message["grid"]["cells"])

    def _frame(self, topic: str, at: float, arrived: float, *, counts: bool) -> None:
        last = self._last.get(topic)
        if last is not None and at <= last:
            return  # Told again with a snapshot.
        self._last[topic] = at
        if not counts:
            return
        self.frames[topic] += 1
        self.lags.append(arrived - at)
        if last is not None:
            self.missed += max(0, round(at - last) - 1)


def main() -> int:
    options = _options()
    followers = asyncio.run(_run(options))
    lags = sorted(lag for follower in followers for lag in follower.lags)
    grids = sorted(lag for follower in followers for lag in follower.grids)
    for name, found in (("frames", lags), ("grids", grids)):
        print(f"{name}: {len(found)}, {_told(found)}")
    print(
        f"clients: {len(followers)}, cut off: {sum(bool(f.ended) for f in followers)}, "
        f"missed: {sum(f.missed for f in followers)} topic seconds, "
        f"told to seed anew: {sum(f.changed for f in followers)}, "
        f"{sum(f.size for f in followers) / len(followers) / options.seconds / 1000:.1f} kB/s each"
    )
    for reason in sorted({f.ended for f in followers if f.ended})[:5]:
        print(f"cut off: {reason}", file=sys.stderr)
    return 0 if lags and not any(f.ended for f in followers) else 1


def _told(lags: Sequence[float]) -> str:
    if not lags:
        return "no lag to tell"
    p50, p95 = (lags[int((len(lags) - 1) * share)] for share in (0.5, 0.95))
    return f"lag p50 {p50 * 1000:.0f} ms, p95 {p95 * 1000:.0f} ms, max {lags[-1] * 1000:.0f} ms"


async def _run(options: argparse.Namespace) -> list[Follower]:
    url = options.url.rstrip("/")
    cookie = options.cookie or await _sign_in(url, options.user, options.password)
    nodes = await _nodes(url, cookie)
    followers = [
        Follower("fleet", None)
        if index < options.fleet or not nodes
        else Follower("node", nodes[index % len(nodes)])
        for index in range(options.clients)
    ]
    loop = asyncio.get_running_loop()
    since = loop.time() + WARM_UP_SECONDS
    until = since + options.seconds
    await asyncio.gather(*(f.follow(url, cookie, until, since) for f in followers))
    return followers


async def _sign_in(url: str, user: str, password: str) -> str:
    """The session's cookie; ends the program when it is refused."""
    page = f"{url}/sign-in/"
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        async with session.get(page) as answer:
            found = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', await answer.text())
        form = {
            "username": user,
            "password": password,
            "csrfmiddlewaretoken": found.group(1) if found else "",
        }
        headers = {"Referer": page, "Origin": _origin(url)}
        async with session.post(page, data=form, headers=headers, allow_redirects=False) as answer:
            cookies = SimpleCookie()
            for header in answer.headers.getall("Set-Cookie", []):
                cookies.load(header)
    if COOKIE not in cookies:
        sys.exit(f"{url} did not sign {user} in.")
    return cookies[COOKIE].value


async def _nodes(url: str, cookie: str) -> list[int]:
    """The nodes that have accelerators, as the fleet's grid names them."""
    watcher = Follower("fleet", None)
    loop = asyncio.get_running_loop()
    await watcher.follow(url, cookie, loop.time() + LOOK_SECONDS, loop.time())
    return sorted(watcher.nodes)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.load.followers", description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--cookie", help="of a signed-in session; else --user and --password")
    parser.add_argument("--user", default="admin")
    parser.add_argument("--password", default=os.environ.get("TANDEM_PASSWORD", ""))
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--fleet", type=int, default=50, help="clients that follow the fleet")
    parser.add_argument("--seconds", type=float, default=60.0)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
