"""`/firmware/fetch/<token>/<name>`: one image, for one BMC or agent, once."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from asgiref.sync import sync_to_async
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from dashboard.firmware.handover import REFUSED, Handover, claim, find, keep
from dashboard.firmware.ranges import Unsatisfiable, asked_range

CHUNK = 1 << 18


class Taken(ConnectionError):
    """Somebody else has had the whole meanwhile: this answer breaks off."""


@csrf_exempt
async def firmware_fetch(request: HttpRequest, token: str, name: str) -> HttpResponseBase:
    if request.method not in ("GET", "HEAD"):
        return _plain("GET, HEAD", 405, Allow="GET, HEAD")
    kind, _space, bearer = request.headers.get("Authorization", "").partition(" ")
    bearer = bearer.strip() if kind.lower() == "bearer" else ""
    address = request.META.get("REMOTE_ADDR") or ""
    handover = await sync_to_async(find)(token, name, bearer, address)
    if handover is None:
        return _plain(REFUSED, 404)
    return _answer(request, handover)


def _answer(request: HttpRequest, handover: Handover) -> HttpResponseBase:
    etag = f'"{handover.sha256}"'
    wanted = request.headers.get("Range", "")
    if request.headers.get("If-Range", etag) != etag:
        wanted = ""
    try:
        asked = asked_range(wanted, handover.size)
    except Unsatisfiable:
        return _plain("", 416, **{"Content-Range": f"bytes */{handover.size}"})
    start, end = asked or (0, handover.size)
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": "no-store",
        "Content-Length": str(end - start),
        "ETag": etag,
    }
    if asked:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{handover.size}"
    response: HttpResponseBase
    if request.method == "HEAD":
        response = HttpResponse(status=206 if asked else 200)
    else:
        response = StreamingHttpResponse(
            _stream(handover, start, end), status=206 if asked else 200
        )
    response.headers["Content-Type"] = "application/octet-stream"
    for name, value in headers.items():
        response.headers[name] = value
    return response


async def _stream(handover: Handover, start: int, end: int) -> AsyncIterator[bytes]:
    sent, claimed, whole = 0, False, False
    try:
        while start + sent < end:
            at = start + sent
            chunk = await asyncio.to_thread(_read, handover.path, at, min(CHUNK, end - at))
            if not chunk:
                raise Taken
            if at + len(chunk) == handover.size:
                claimed = await sync_to_async(claim)(handover.pk, start)
                if not claimed and start == 0:
                    raise Taken
            yield chunk
            sent += len(chunk)
        whole = claimed
    finally:
        # Also when the other side hung up, which cancels whatever is awaited here.
        await asyncio.shield(
            sync_to_async(keep)(handover, start, sent, claimed=claimed, whole=whole)
        )


def _read(path: Path, at: int, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(at)
        return file.read(length)


def _plain(text: str, status: int, **headers: str) -> HttpResponse:
    return HttpResponse(text, status=status, content_type="text/plain", headers=headers)
