"""Every sentence is there in Chinese: none missing, none doubtful, none with other placeholders."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = ("dashboard", "engine", "monitoring", "templates", "static")
DOMAINS = ("django", "djangojs")
CATALOGUE = "locale/zh_Hans/LC_MESSAGES/{}.po"
PLACEHOLDER = re.compile(r"%\(\w+\)[a-z]|%[a-z%]")


def read(path: Path) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale="zh_Hans", abort_invalid=True)


def messages(catalogue: Catalog) -> Iterator[Message]:
    return (message for message in catalogue if message.id)


def texts(value: str | Iterable[str] | None) -> list[str]:
    """One sentence, or the forms of a plural."""
    return [value or ""] if value is None or isinstance(value, str) else list(value)


def placeholders(text: str) -> list[str]:
    return sorted(PLACEHOLDER.findall(text))


@pytest.fixture(scope="module")
def extracted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project whose catalogues were brought up to date from the code."""
    if shutil.which("xgettext") is None:
        missing = "gettext's tools are missing: nobody looked for untranslated sentences."
        if os.environ.get("CI"):
            pytest.fail(missing)
        pytest.skip(missing)
    copy = tmp_path_factory.mktemp("sources")
    for source in SOURCES:
        shutil.copytree(
            PROJECT / source, copy / source, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copytree(PROJECT / "locale", copy / "locale")
    # Without settings, so that Django writes to this copy and not to the project's catalogues.
    environment = {k: v for k, v in os.environ.items() if k != "DJANGO_SETTINGS_MODULE"}
    for domain in DOMAINS:
        command = [sys.executable, "-m", "django", "makemessages", "--locale", "zh_Hans"]
        subprocess.run(
            [*command, "--domain", domain, "--no-obsolete", "--verbosity", "0"],
            cwd=copy,
            env=environment,
            check=True,
            timeout=120,
        )
    return copy


@pytest.mark.parametrize("domain", DOMAINS)
def test_every_sentence_is_translated(domain: str) -> None:
    catalogue = read(PROJECT / CATALOGUE.format(domain))
    found = list(messages(catalogue))
    assert found
    missing = [it.id for it in found if it.fuzzy or not all(texts(it.string))]
    assert missing == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_placeholders_are_the_same(domain: str) -> None:
    """A plural form may leave the number out, so Chinese is compared with the English plural."""
    catalogue = read(PROJECT / CATALOGUE.format(domain))
    differ = [
        it.id
        for it in messages(catalogue)
        for text in texts(it.string)
        if placeholders(text) != placeholders(texts(it.id)[-1])
    ]
    assert differ == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_sentence_in_the_code_is_unknown_to_the_translator(domain: str, extracted: Path) -> None:
    known = {str(it.id) for it in messages(read(PROJECT / CATALOGUE.format(domain)))}
    used = {str(it.id) for it in messages(read(extracted / CATALOGUE.format(domain)))}
    assert sorted(used - known) == []


@pytest.mark.parametrize("domain", DOMAINS)
def test_no_translation_is_left_of_a_sentence_that_is_gone(domain: str, extracted: Path) -> None:
    known = {str(it.id) for it in messages(read(PROJECT / CATALOGUE.format(domain)))}
    used = {str(it.id) for it in messages(read(extracted / CATALOGUE.format(domain)))}
    assert sorted(known - used) == []
