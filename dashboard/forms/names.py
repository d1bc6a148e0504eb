"""What a name that becomes part of an address may look like, said the same everywhere."""

import re

from django.utils.translation import gettext_lazy as _

PLAIN_NAME = _("Only letters, digits, hyphens and underscores, without spaces.")
RESERVED = ("new",)
"""Addresses of the panel's own."""


def is_plain(name: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9_-]{1,63}", name)) and name not in RESERVED
