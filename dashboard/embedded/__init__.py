"""Postgres and Valkey from Python wheels: no root, no Docker, unix sockets only."""

from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.embedded.process import EmbeddedError
from dashboard.embedded.valkey import EmbeddedValkey

__all__ = ["EmbeddedError", "EmbeddedPostgres", "EmbeddedValkey"]
