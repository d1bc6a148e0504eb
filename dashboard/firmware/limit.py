"""Who may send a body as large as an image: who is signed in, to the two forms that take one."""

from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Any

from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import Error as DatabaseError

PATHS = ("/firmware/images/new/", "/firmware/images/bundle/")


async def is_upload_of_somebody(scope: Mapping[str, Any]) -> bool:
    """Before Django spools the body: a stranger could fill the disk otherwise."""
    if scope.get("method") != "POST" or scope.get("path") not in PATHS:
        return False
    headers = [value for name, value in scope["headers"] if name == b"cookie"]
    try:
        cookies = SimpleCookie(b"; ".join(headers).decode("latin-1"))
    except CookieError:
        return False
    if settings.SESSION_COOKIE_NAME not in cookies:
        return False
    try:
        held = await SessionStore(cookies[settings.SESSION_COOKIE_NAME].value).aload()
    except DatabaseError:
        return False
    return SESSION_KEY in held
