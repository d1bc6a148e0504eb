"""Run inside `manage.py shell`: two nodes, the bundled model, and a deployment over both."""

import json

from dashboard import catalogue, lifecycle
from dashboard.choices import FallbackMode
from dashboard.models import Deployment, Fallback, Node


def nodes(addresses: dict[str, str]) -> None:
    """Prints each new node's token. Their floor is low: the boxes share one machine's memory."""
    tokens = {}
    for name, address in addresses.items():
        _, tokens[name] = lifecycle.create_node(name, address)
    Node.objects.update(settings={"memory_floor_mb": 128})
    print(json.dumps(tokens))


def deploy(name: str, fallback: str) -> None:
    """`fallback`: none, resident or cold; in fp32, so that it says the same."""
    model = catalogue.import_model(
        catalogue.bundled_model_path(), "smollm2-135m-instruct", "SmolLM2 135M Instruct"
    )
    deployment = Deployment.objects.create(
        name=name, model=model, settings={"tp": 2, "pp": 1, "dtype": "fp32"}
    )
    if fallback != "none":
        Fallback.objects.create(deployment=deployment, mode=FallbackMode(fallback), dtype="fp32")
    lifecycle.request_deploy(deployment, by="chaos")
