"""An address for one image: good once, whole, for whoever has it."""

import asyncio
import hashlib
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from django.utils import timezone

from dashboard.firmware import store
from dashboard.firmware.errors import ImageRefused
from dashboard.models import AuditEntry, FirmwareFetch, FirmwareImage, Node
from tests.dashboard.gateway_cast import panel

pytestmark = pytest.mark.django_db(transaction=True)

CONTENT = bytes(range(256)) * 3000
SECONDS = 15.0
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def image(settings: Any, tmp_path: Path) -> FirmwareImage:
    settings.STATE_DIR = tmp_path
    settings.PUBLIC_URL = "https://panel.example:8443"
    (store.folder() / SHA256).write_bytes(CONTENT)
    return FirmwareImage.objects.create(
        name="bmc 2.0/../x.bin",
        component="bmc",
        version="2.0",
        size=len(CONTENT),
        sha256=SHA256,
        source="upload",
        by="ada",
    )


async def body(response: Any) -> bytes:
    return b"".join([chunk async for chunk in response.streaming_content])


def address(image: FirmwareImage) -> str:
    return store.one_use_url(image, None).removeprefix("https://panel.example:8443")


async def test_it_is_fetched_whole_exactly_once(image: FirmwareImage) -> None:
    client, url = AsyncClient(), await sync_to_async(address)(image)
    first = await client.get(url)
    assert first.status_code == 200
    assert await body(first) == CONTENT
    assert first.headers["Content-Length"] == str(len(CONTENT))
    again = await client.get(url)
    assert again.status_code == 404
    entry = await AuditEntry.objects.aget(action="firmware.fetch")
    assert entry.after == {"from": 0, "bytes": len(CONTENT), "whole": True}


async def test_what_broke_off_goes_on_where_it_was(image: FirmwareImage) -> None:
    client, url = AsyncClient(), await sync_to_async(address)(image)
    first = await client.get(url)
    stream: Any = first.streaming_content  # type: ignore[attr-defined]
    begun = await anext(stream)
    await stream.aclose()
    # The other side hung up while it was being handed that piece, so nothing counts as sent.
    again = await client.get(url, headers={"Range": "bytes=0-99"})
    assert again.status_code == 206
    assert await body(again) == CONTENT[:100]
    rest = await client.get(url, headers={"Range": "bytes=100-", "If-Range": f'"{SHA256}"'})
    assert rest.headers["Content-Range"] == f"bytes 100-{len(CONTENT) - 1}/{len(CONTENT)}"
    assert begun[:100] + await body(rest) == CONTENT
    assert (await client.get(url)).status_code == 404


async def test_looking_and_the_end_alone_do_not_use_it_up(image: FirmwareImage) -> None:
    client, url = AsyncClient(), await sync_to_async(address)(image)
    assert (await client.head(url)).headers["Content-Length"] == str(len(CONTENT))
    end = await client.get(url, headers={"Range": "bytes=-16"})
    assert await body(end) == CONTENT[-16:]
    assert (await client.get(url, headers={"Range": f"bytes={len(CONTENT)}-"})).status_code == 416
    assert await body(await client.get(url)) == CONTENT


async def test_of_two_at_once_one_gets_it(image: FirmwareImage) -> None:
    client, url = AsyncClient(), await sync_to_async(address)(image)
    one, other = await client.get(url), await client.get(url)
    assert await body(one) == CONTENT
    with pytest.raises(ConnectionError):
        await body(other)


async def test_an_agent_brings_its_own_token_too(image: FirmwareImage) -> None:
    node = Node(name="box", address="127.0.0.1")
    token = node.issue_token()
    await node.asave()
    url = await sync_to_async(store.one_use_path)(image, None)
    client = AsyncClient()
    assert (await client.get(url)).status_code == 404
    assert (await client.get(url, headers={"Authorization": "Bearer no"})).status_code == 404
    got = await client.get(url, headers={"Authorization": f"Bearer {token}"})
    assert await body(got) == CONTENT


async def test_nothing_else_is_found(image: FirmwareImage) -> None:
    url = await sync_to_async(address)(image)
    head, name = url.rsplit("/", 1)
    others = [f"{head}x/{name}", f"{head}/other.bin", "/firmware/fetch/", f"{url}/"]
    late = timezone.now() - timedelta(seconds=1)
    for other in (*others, url):
        if other == url:
            await FirmwareFetch.objects.aupdate(expires_at=late)
        response = await AsyncClient().get(other)
        assert response.status_code == 404
        assert "Location" not in response.headers


async def test_only_the_hash_of_the_token_is_kept(image: FirmwareImage) -> None:
    url = await sync_to_async(address)(image)
    row = await FirmwareFetch.objects.aget()
    assert row.token_hash not in url
    assert len(row.token_hash) == 64


def test_without_an_address_of_the_panel_it_says_what_to_do(
    image: FirmwareImage, settings: Any
) -> None:
    settings.PUBLIC_URL = ""
    with pytest.raises(ImageRefused, match="TANDEM_PUBLIC_URL"):
        store.one_use_url(image, None)


async def status_of(client: aiohttp.ClientSession, url: str) -> int:
    async with client.get(url) as answer:
        return answer.status


async def test_over_the_wire_a_fetch_that_is_cut_goes_on(image: FirmwareImage) -> None:
    large = CONTENT * 20
    image.sha256 = hashlib.sha256(large).hexdigest()
    image.size = len(large)
    await image.asave()
    (await sync_to_async(store.path_of)(image)).write_bytes(large)
    url = await sync_to_async(address)(image)
    async with panel() as client:
        first = await client.get(url)
        have = await first.content.readexactly(1_000_000)
        first.close()
        async with asyncio.timeout(SECONDS):
            while not await AuditEntry.objects.filter(action="firmware.fetch").aexists():
                await asyncio.sleep(0.05)
        row = await FirmwareFetch.objects.aget()
        assert row.done_at is None
        assert len(have) <= row.sent < len(large)
        rest = await client.get(url, headers={"Range": f"bytes={len(have)}-"})
        assert have + await rest.read() == large
        async with asyncio.timeout(SECONDS):
            while await status_of(client, url) != 404:
                await asyncio.sleep(0.05)
        assert (await FirmwareFetch.objects.aget()).done_at is not None
