"""What the telemetry tests need around them."""

from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections

from monitoring.live.desk import live
from monitoring.live.writer import writer

CLOSE_SECONDS = 10.0


@pytest.fixture
def no_connection_left() -> Iterator[None]:
    """Close what `sync_to_async`'s thread opened, or the test database cannot be dropped."""
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result(CLOSE_SECONDS)


@pytest.fixture
async def nothing_live_left() -> AsyncIterator[None]:
    """Close what followed and stored telemetry in the test's loop."""
    yield
    await writer().close()
    await live().close()
