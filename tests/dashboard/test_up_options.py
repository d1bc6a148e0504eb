import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from dashboard.up.errors import UpError
from dashboard.up.options import Options, check_port, prepare_state


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        yield listener.getsockname()[1]


def test_a_taken_port_is_one_line_with_the_remedy(taken_port: int) -> None:
    with pytest.raises(UpError, match=rf"Port {taken_port} .* taken .* set TANDEM_PORT") as refused:
        check_port("127.0.0.1", taken_port)
    assert "\n" not in str(refused.value)


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(UpError, match=r"Cannot listen on 203\.0\.113\.7:8000"):
        check_port("203.0.113.7", 8000)


@pytest.mark.parametrize("value", ["eighty", "0", "70000"])
def test_a_malformed_port_stops_the_start(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_PORT", value)
    with pytest.raises(ImproperlyConfigured, match="TANDEM_PORT must be a number"):
        Options.from_environment(Path("/nowhere"))


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DATABASE_URL", "mysql://u:s3cret@h/x", "must start with postgresql://"),
        ("DATABASE_URL", "postgresql://u:s3cret@h:port/x", "the port must be a number"),
        ("DATABASE_URL", "postgresql://u:s3cret#more@h:5432/x", "must be written as %2F"),
        ("DATABASE_URL", "postgresql://[s3cret", "cannot be read"),
        ("TANDEM_ENGINE_PORTS", "30000-20000", "must look like 21000-30999"),
        ("TANDEM_DEBUG", "perhaps", "must be true or false"),
        ("TANDEM_LOG_LEVEL", "LOUD", "must be DEBUG, INFO"),
        ("TANDEM_TRUSTED_ORIGINS", "tandem.example", "must list origins such as https://"),
        ("TANDEM_SYSFS_ROOT", "relative", "must be the full path of a folder"),
    ],
)
def test_a_malformed_value_is_one_line_that_names_it(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ImproperlyConfigured) as refused:
        Options.from_environment(Path("/nowhere"))
    said = str(refused.value)
    assert said.startswith(name)
    assert sentence in said
    assert "\n" not in said
    assert "s3cret" not in said


def test_the_log_level_is_that_of_worker_and_beat_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TANDEM_LOG_LEVEL", "debug")
    assert Options.from_environment(tmp_path).log_level == "DEBUG"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:8123"),
        ("::", "http://[::1]:8123"),
        ("192.0.2.4", "http://192.0.2.4:8123"),
    ],
)
def test_the_printed_address_can_be_opened(
    host: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TANDEM_HOST", host)
    monkeypatch.setenv("TANDEM_PORT", "8123")
    assert Options.from_environment(Path("/nowhere")).url == url


def test_state_is_private_and_the_key_is_made_once(tmp_path: Path) -> None:
    state = tmp_path / "state"
    prepare_state(state)
    key = state / "secrets" / "django-key"
    first = key.read_text()
    prepare_state(state)
    assert key.read_text() == first
    modes = [path.stat().st_mode & 0o777 for path in (state, key.parent, key)]
    assert modes == [0o700, 0o700, 0o600]


def test_options_never_print_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEM_ADMIN_PASSWORD", "opensesame")
    assert "opensesame" not in repr(Options.from_environment(Path("/nowhere")))


def test_without_local_nodes_nothing_is_deployed(tmp_path: Path) -> None:
    options = Options.from_environment(tmp_path, nodes=0)
    assert (options.nodes, options.demo) == (0, False)


def test_both_local_nodes_and_the_bundled_model_are_the_default(tmp_path: Path) -> None:
    options = Options.from_environment(tmp_path)
    assert (options.nodes, options.demo) == (2, True)
