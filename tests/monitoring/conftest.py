"""What the telemetry tests need around them."""

from collections.abc import Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

CLOSE_SECONDS = 10.0


@pytest.fixture
def no_connection_left() -> Iterator[None]:
    """Close what `sync_to_async`'s thread opened, or the test database cannot be dropped."""
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result(CLOSE_SECONDS)
