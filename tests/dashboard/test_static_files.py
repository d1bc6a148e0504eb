"""Static files under ASGI: streamed, cached by the browser, refused in the usual ways."""

import warnings

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client

PLOTLY = "/static/plotly/plotly.min.js"


async def _read(response: object) -> list[bytes]:
    assert isinstance(response, StreamingHttpResponse)
    assert response.is_async
    return [chunk async for chunk in response]


@pytest.fixture
def plotly() -> bytes:
    path = finders.find(PLOTLY.removeprefix("/static/"))
    assert isinstance(path, str)
    with open(path, "rb") as file:
        return file.read()


async def test_a_large_file_is_sent_in_pieces(plotly: bytes) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        response = await AsyncClient().get(PLOTLY)
        chunks = await _read(response)
    assert b"".join(chunks) == plotly
    assert len(chunks) > 1
    assert response["Content-Length"] == str(len(plotly))
    assert "javascript" in response["Content-Type"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in response


async def test_what_the_browser_has_is_not_sent_again() -> None:
    first = await AsyncClient().get(PLOTLY)
    await _read(first)
    again = await AsyncClient().get(PLOTLY, headers={"If-None-Match": first["ETag"]})
    assert again.status_code == 304
    assert again.content == b""
    assert again["ETag"] == first["ETag"]
    assert again["Cache-Control"] == first["Cache-Control"] == "max-age=60, public"


async def test_a_part_of_a_file(plotly: bytes) -> None:
    response = await AsyncClient().get(PLOTLY, headers={"Range": "bytes=10-19"})
    assert response.status_code == 206
    assert b"".join(await _read(response)) == plotly[10:20]


async def test_only_the_head_of_a_file(plotly: bytes) -> None:
    response = await AsyncClient().head(PLOTLY)
    assert response.content == b""
    assert response["Content-Length"] == str(len(plotly))


async def test_a_file_cannot_be_posted_to() -> None:
    response = await AsyncClient().post(PLOTLY)
    assert response.status_code == 405
    assert response["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["no-such.js", "../manage.py", "%2e%2e/manage.py"])
async def test_what_is_not_there_is_a_404(path: str) -> None:
    assert (await AsyncClient().get(f"/static/{path}")).status_code == 404


def test_the_synchronous_way_serves_the_same(plotly: bytes) -> None:
    assert b"".join(Client().get(PLOTLY)) == plotly


def test_the_panel_uses_it() -> None:
    assert "dashboard.static_files.StaticFiles" in settings.MIDDLEWARE
