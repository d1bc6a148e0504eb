"""Text from people and models on its way into the database."""


def storable(text: str) -> str:
    """Without the one character that Postgres refuses."""
    return text.replace("\x00", "")
