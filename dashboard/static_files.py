"""Static files without leaving the event loop: WhiteNoise's table and headers, sent in chunks."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, BinaryIO

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

CHUNK_BYTES = 256 * 1024
Answer = HttpResponseBase | Awaitable[HttpResponseBase]


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # WhiteNoise is untyped
    """WhiteNoise's own middleware is synchronous: under ASGI it makes every request of the panel
    change threads, and Django reads a whole file into memory before it sends the first byte.
    """

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Answer:
        if iscoroutinefunction(self):
            return self._answer(request)
        answer: HttpResponseBase = super().__call__(request)
        return answer

    async def _answer(self, request: HttpRequest) -> HttpResponseBase:
        # While developing, files appear and change; otherwise the table is complete.
        find = self.find_file if self.autorefresh else self.files.get
        file = find(request.path_info)
        if file is None:
            answer: HttpResponseBase = await self.get_response(request)
            return answer
        found = await asyncio.to_thread(file.get_response, request.method, request.META)
        response: HttpResponseBase
        if found.file is None:
            response = HttpResponse(status=int(found.status))
        else:
            response = StreamingHttpResponse(_chunks(found.file), status=int(found.status))
        del response["Content-Type"]
        for name, value in found.headers:
            response[name] = value
        return response


async def _chunks(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while block := await asyncio.to_thread(file.read, CHUNK_BYTES):
            yield block
