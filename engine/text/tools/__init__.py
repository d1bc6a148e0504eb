"""Tool calls in a model's answers: one file a style, and what they share."""

from engine.text.tools.choice import choose_style
from engine.text.tools.parser import CallParser
from engine.text.tools.pieces import CallArguments, CallStart, Piece, Text
from engine.text.tools.style import Function, Spell, ToolStyle

__all__ = [
    "CallArguments",
    "CallParser",
    "CallStart",
    "Function",
    "Piece",
    "Spell",
    "Text",
    "ToolStyle",
    "choose_style",
]
