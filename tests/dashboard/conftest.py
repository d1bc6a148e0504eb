from collections.abc import AsyncIterator, Iterator

import pytest
from asgiref.sync import SyncToAsync
from django.db import connections
from django.utils import translation

from monitoring.live.desk import live
from monitoring.live.writer import writer

SECONDS = 20.0


@pytest.fixture(autouse=True)
def _no_connection_is_left() -> Iterator[None]:
    """`aget` and its like leave their thread's connection open; with one of the last test's the
    database could not be dropped."""
    yield
    SyncToAsync.single_thread_executor.submit(connections.close_all).result(SECONDS)


@pytest.fixture(autouse=True)
def _english_is_spoken() -> Iterator[None]:
    """A request leaves its reader's language behind in the thread, for the next test to speak."""
    yield
    translation.deactivate()


@pytest.fixture
async def nothing_live_left() -> AsyncIterator[None]:
    """Close what stored and showed telemetry in the test's loop."""
    yield
    await writer().close()
    await live().close()
