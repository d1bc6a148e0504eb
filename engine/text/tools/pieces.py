"""What an answer with tool calls is made of, in the order it was said."""

import msgspec


class Text(msgspec.Struct, frozen=True):
    """Ordinary content."""

    text: str


class CallStart(msgspec.Struct, frozen=True):
    """A call, known by name; its arguments follow."""

    index: int
    name: str


class CallArguments(msgspec.Struct, frozen=True):
    """More of a call's arguments. All of them in a row are the JSON text the model wrote."""

    index: int
    text: str


Piece = Text | CallStart | CallArguments
