"""`manage.py apply FILE`: make the fleet as a document in version control has it."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard import declared
from dashboard.audit import Actor
from dashboard.declared import DocumentRefused
from dashboard.errors import TandemError

PENDING, REFUSED = 3, 2


class Command(BaseCommand):
    help = (
        "Apply a YAML document. Everything is checked before anything changes. With --dry-run, "
        "says what would change and ends with 3 if something would; ends with 2 when refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the document, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="change nothing")

    def handle(self, *args: object, **options: Any) -> None:
        text = _read(options["file"])
        try:
            document = declared.load(text)
            if options["dry_run"]:
                found = declared.differences(document)
            else:
                found = declared.apply(document, Actor("manage.py apply", via="command"))
        except (DocumentRefused, TandemError) as error:
            raise CommandError(str(error), returncode=REFUSED) from error
        for one in found:
            name = f"{one.name} {one.setting}".strip()
            self.stdout.write(f"{one.kind} {name}: {one.now} -> {one.wanted}")
        if not found:
            self.stdout.write("Nothing differs.")
        elif options["dry_run"]:
            sys.exit(PENDING)


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}", returncode=REFUSED) from error
