"""Whether whoever opened a socket may still look: it may be older than a sign-out, the end of a
session or of an account."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from typing import Any

from channels.auth import get_user
from django.conf import settings
from django.db import Error

log = logging.getLogger(__name__)

LOOK_SECONDS = 4.0


async def signed_out(
    scope: Mapping[str, Any], still: Callable[[], Awaitable[bool]] | None = None
) -> None:
    """Ends once the socket's user is no longer signed in, or what else is asked no longer holds."""
    while await _signed_in(scope) and await _holds(still):
        await asyncio.sleep(LOOK_SECONDS)


async def _holds(still: Callable[[], Awaitable[bool]] | None) -> bool:
    try:
        return still is None or await still()
    except Error as error:
        log.info("What somebody may see cannot be read: %s", error)
        return True


async def _signed_in(scope: Mapping[str, Any]) -> bool:
    """A database that does not answer signs nobody out; nor does a user of no session."""
    if "session" not in scope:
        return True
    store = import_module(settings.SESSION_ENGINE).SessionStore
    try:
        user = await get_user({"session": store(scope["session"].session_key)})
    except Error as error:
        log.info("Whether somebody is still signed in cannot be read: %s", error)
        return True
    return bool(user.is_authenticated)
