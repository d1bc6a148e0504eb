"""Serves an ASGI application on one socket inside a running event loop."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from engine.errors import ConfigError, said, system_words
from engine.errors import gettext_noop as _
from engine.protocol.launch import Address

CLOSING_SECONDS = 3


class ListenError(ConfigError):
    """Another program has the address, perhaps for the moment only."""


def cannot_listen(address: Address, error: OSError) -> ListenError:
    """A sentence without the details Python adds to the system's own words."""
    resolving = isinstance(error, socket.gaierror) or error.errno is None
    words = system_words(error) if resolving else said(os.strerror(error.errno or 0))
    return ListenError(
        _("Cannot listen on %(address)s: %(reason)s."), address=str(address), reason=words
    )


class _Server(uvicorn.Server):
    """Leaves signals to the process that owns it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class HttpFront:
    def __init__(self, app: ASGIApp, address: Address) -> None:
        """Binds at once; raises ListenError when the port is taken."""
        try:
            self._socket = socket.create_server((address.host, address.port), backlog=512)
        except OSError as error:
            raise cannot_listen(address, error) from error
        host, port = self._socket.getsockname()[:2]
        self.address = Address(host, port)
        self._server = _Server(
            uvicorn.Config(
                app,
                log_level="warning",
                access_log=False,
                lifespan="off",
                timeout_keep_alive=30,
                timeout_graceful_shutdown=CLOSING_SECONDS,
                server_header=False,
            )
        )
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._server.serve(sockets=[self._socket]))

    async def stop(self) -> None:
        """Accept nothing more, let open answers end for a moment, then hang up."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        self._socket.close()
