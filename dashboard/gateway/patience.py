"""A database that is away for a few seconds is waited for."""

import asyncio
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from channels.db import database_sync_to_async
from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext as _

from dashboard.gateway.errors import ApiError

P = ParamSpec("P")
T = TypeVar("T")

AWAY = (OperationalError, InterfaceError)
"""What Django raises when the server is gone or on its way up."""
PATIENCE_SECONDS = 10.0
PAUSE_SECONDS = 0.2


async def once(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Database work in a thread; raises one of AWAY where there is no database."""
    result: T = await database_sync_to_async(work)(*args, **kwargs)
    return result


async def patiently(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same, again and again while there is no database; 503 when that lasts."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return await once(work, *args, **kwargs)
        except AWAY as error:
            if time.monotonic() >= deadline:
                raise no_database() from error
        await asyncio.sleep(PAUSE_SECONDS)


def no_database() -> ApiError:
    return ApiError(
        _("The panel’s database does not answer; try again in a moment."),
        status=503,
        code="database_away",
        retry_after=5,
    )
