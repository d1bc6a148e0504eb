"""`manage.py export`: the configuration as a document that `manage.py apply` takes."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard import declaring


class Command(BaseCommand):
    help = "Write the configuration as YAML, without secrets."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--output", help="a file; else it is printed")

    def handle(self, *args: object, **options: Any) -> None:
        text = declaring.export()
        if not options["output"]:
            self.stdout.write(text, ending="")
            return
        try:
            Path(options["output"]).write_text(text, encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{options['output']} cannot be written: {error}") from error
