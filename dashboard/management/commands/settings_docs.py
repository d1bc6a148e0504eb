"""`manage.py settings_docs`: docs/settings.md, made from the declarations."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from dashboard.configuration.reference import page


class Command(BaseCommand):
    help = "Write docs/settings.md anew from the declared settings."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--print", action="store_true", help="print it instead")

    def handle(self, *args: object, **options: Any) -> None:
        if options["print"]:
            self.stdout.write(page(), ending="")
        else:
            (Path(settings.BASE_DIR) / "docs" / "settings.md").write_text(page(), encoding="utf-8")
