"""`manage.py rotate_secrets`: seal every stored secret with a new key."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard import resealing
from dashboard.audit import Actor, note
from monitoring import vault

IN_ENVIRONMENT = (
    "The keys come from TANDEM_VAULT_KEYS, so a new one belongs there: put it before the others, "
    "restart Tandem, and run this command again without --new-key. This is a new one: {key}"
)
NO_FILE = (
    "The key file cannot be written: {error}. Start Tandem once with manage.py up, or set "
    "TANDEM_VAULT_KEYS."
)


class Command(BaseCommand):
    help = (
        "Seal every stored secret with the first key. Where nothing waits for that, a new key is "
        "made first. It may be broken off at any moment and run again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--check", action="store_true", help="say what is sealed with old keys")
        parser.add_argument("--new-key", action="store_true", help="make a new key in any case")
        parser.add_argument(
            "--drop-old", action="store_true", help="forget the old keys, if nothing needs them"
        )
        parser.add_argument("--print-key", action="store_true", help="print a new key, no more")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["print_key"]:
            self.stdout.write(vault.new_key())
        elif options["check"]:
            self._check()
        elif vault.place() == "environment":
            self._change(options)
        else:
            self._change_alone(options)

    def _change(self, options: dict[str, Any]) -> None:
        if options["drop_old"]:
            self._drop_old()
        else:
            self._rotate(options["new_key"])

    def _change_alone(self, options: dict[str, Any]) -> None:
        try:
            with vault.one_rotation():
                self._change(options)
        except vault.Rotating as error:
            raise CommandError("Another rotation is under way; wait for its end.") from error
        except OSError as error:
            raise CommandError(NO_FILE.format(error=error)) from error

    def _check(self) -> None:
        outcome = resealing.look()
        self._tell(outcome, "sealed with an old key")
        if outcome.old:
            raise CommandError("Run manage.py rotate_secrets to seal them with the first key.")
        if not outcome.unreadable:
            self.stdout.write("Everything is sealed with the first key.")

    def _rotate(self, wanted: bool) -> None:
        if wanted or not resealing.look().old:
            self._make_key(wanted)
        outcome = resealing.reseal_all()
        self._tell(outcome, "sealed anew")
        if not outcome.old:
            self.stdout.write("Nothing was sealed with an old key.")
        note(Actor("rotate_secrets", via="command"), "secret.rotate", "", after=dict(outcome.old))
        if len(vault.keys()) > 2:
            self.stdout.write("--drop-old forgets the old keys of the file.")

    def _make_key(self, wanted: bool) -> None:
        if vault.place() == "environment":
            if wanted:
                raise CommandError(IN_ENVIRONMENT.format(key=vault.new_key()))
            return
        vault.add_key()
        self.stdout.write("A new key was made.")

    def _drop_old(self) -> None:
        if vault.place() != "file":
            raise CommandError("Only keys of the file are forgotten here; take the others out.")
        outcome = resealing.look()
        if outcome.old:
            self._tell(outcome, "sealed with an old key")
            raise CommandError("Old keys are still needed. Run manage.py rotate_secrets first.")
        self.stdout.write(f"Old keys forgotten: {vault.keep_first_key()}.")

    def _tell(self, outcome: resealing.Outcome, what: str) -> None:
        for kind, count in sorted(outcome.old.items()):
            self.stdout.write(f"{count} {what}: {kind}")
        for name in outcome.unreadable:
            self.stderr.write(f"Cannot be read, its key is gone; enter it again: {name}")
