"""`manage.py apply FILE`: make the fleet as a document in version control has it."""

import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard import declaring
from dashboard.audit import Actor
from dashboard.errors import TandemError

PENDING, REFUSED = 3, 2


class Command(BaseCommand):
    help = (
        "Apply a YAML document. Everything is checked before anything changes. Ends with 0 when it "
        "is so, with 2 when it is refused, and with --dry-run with 3 when something would change."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", help="the document, or - for standard input")
        parser.add_argument("--dry-run", action="store_true", help="change nothing")
        parser.add_argument(
            "--prune",
            action="store_true",
            help="remove deployments, templates and teams that the document does not name in a "
            "part that it has; a deployment that runs is stopped, and removed the next time",
        )

    def handle(self, *args: object, **options: Any) -> None:
        text, prune = _read(options["file"]), options["prune"]
        try:
            document = declaring.load(text)
            if options["dry_run"]:
                found = declaring.changes(document, prune=prune)
            else:
                actor = Actor("manage.py apply", via="command")
                found = declaring.apply(document, actor, prune=prune)
        except TandemError as error:
            raise CommandError(str(error), returncode=REFUSED) from error
        for change in found:
            for one in change.differences:
                name = f"{one.name} {one.setting}".strip()
                way = f" ({change.way})" if change.way else ""
                self.stdout.write(f"{one.kind} {name}: {one.now} -> {one.wanted}{way}")
        if not found:
            self.stdout.write("Nothing differs.")
        elif options["dry_run"]:
            sys.exit(PENDING)


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name} cannot be read: {error}", returncode=REFUSED) from error
