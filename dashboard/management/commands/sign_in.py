"""`manage.py sign_in --local on`: the way back in, from the machine itself."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError

from dashboard import panel_settings
from dashboard.audit import Actor
from dashboard.configuration.declared import SettingsRefused
from dashboard.identity import factors
from dashboard.identity import provider as providers
from dashboard.lifecycle.settings import change_panel

ACTOR = Actor("sign_in", via="command")


class Command(BaseCommand):
    help = "Say which ways of signing in are open, or open one again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--local", choices=("on", "off"), help="passwords")
        parser.add_argument("--oidc", choices=("on", "off"), help="the identity provider")
        parser.add_argument(
            "--remove-factor", metavar="USER", help="take somebody's second factor away"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if name := options["remove_factor"]:
            self._remove_factor(name)
        wanted = {
            f"sign_in_{way}": options[way] == "on" for way in ("local", "oidc") if options[way]
        }
        if wanted:
            try:
                change_panel(wanted, ACTOR)
            except SettingsRefused as error:
                raise CommandError(str(error)) from error
            panel_settings.forget()
        provider = providers.in_use()
        self.stdout.write(f"Passwords: {'on' if providers.local_open() else 'off'}")
        self.stdout.write(f"Identity provider: {provider.issuer if provider else 'off'}")

    def _remove_factor(self, name: str) -> None:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"There is no user {name!r}.")
        factors.remove(user, ACTOR)
        self.stdout.write(f"{name} has no second factor any more.")
