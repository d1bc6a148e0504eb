"""Text from people and models on its way into the database."""


def storable(text: str) -> str:
    """Without the one character that Postgres refuses, and without halves of surrogate pairs."""
    return "".join(one for one in text if can_be_kept(one)) if not can_be_kept(text) else text


def can_be_kept(text: str) -> bool:
    """Whether the database takes it: neither that character nor half of a surrogate pair."""
    return "\x00" not in text and not any("\ud800" <= one <= "\udfff" for one in text)
