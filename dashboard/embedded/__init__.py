"""Postgres and Valkey from Python wheels: no root, no Docker, unix sockets only."""

from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.embedded.valkey import EmbeddedValkey

__all__ = ["EmbeddedPostgres", "EmbeddedValkey"]
