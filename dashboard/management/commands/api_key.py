"""`manage.py api_key --user admin --name ci`: a key for a program."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from dashboard.audit import Actor, note
from dashboard.models import ApiKey

ACTOR = Actor("manage.py api_key", via="command")


class Command(BaseCommand):
    help = "Make an API key. Prints the key alone; it cannot be read again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--user", required=True)
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument(
            "--manages",
            action="store_true",
            help="it may change configuration, as far as its owner may",
        )

    def handle(self, *args: object, **options: Any) -> None:
        user = get_user_model().objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        key = ApiKey(user=user, name=options["name"], manages=options["manages"])
        secret = key.issue()
        with transaction.atomic():
            key.save()
            told = {"owner": user.get_username(), "manages": key.manages}
            note(ACTOR, "key.create", key.name, after=told)
        self.stdout.write(secret)
