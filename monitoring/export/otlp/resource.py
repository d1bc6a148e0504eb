"""Who is speaking, for a collector. Imports the SDK."""

from opentelemetry.sdk.resources import SERVICE_NAME, Resource


def resource() -> Resource:
    """As the standard variables say; named tandem where they name nothing."""
    found = Resource.create()
    unnamed = str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service")
    return found.merge(Resource({SERVICE_NAME: "tandem"})) if unnamed else found
