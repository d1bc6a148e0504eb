"""`manage.py node_token --name box-a --address 10.0.0.5`: the token its agent dials in with."""

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from dashboard import lifecycle
from dashboard.audit import Actor, note
from dashboard.forms.nodes import NodeForm
from dashboard.models import Node

ACTOR = Actor("manage.py node_token", via="command")


class Command(BaseCommand):
    help = "Add a node, or give it a new token. Prints the token alone; it cannot be read again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True)
        parser.add_argument("--address", help="where other nodes reach its engines")

    def handle(self, *args: object, **options: str) -> None:
        name, address = options["name"], options["address"]
        node = Node.objects.filter(name=name).first()
        if node is None:
            if not address:
                raise CommandError(f"Node {name} is new: give its --address too.")
            _check(name, address)
            with transaction.atomic():
                node, token = lifecycle.create_node(name, address)
                note(ACTOR, "node.add", node, after={"address": node.address})
        else:
            with transaction.atomic():
                token = lifecycle.rotate_token(node, address)
                note(ACTOR, "node.token", node)
        self.stdout.write(token)


def _check(name: str, address: str) -> None:
    for field, errors in NodeForm({"name": name, "address": address}).errors.items():
        raise CommandError(f"--{field}: {errors[0]}")
