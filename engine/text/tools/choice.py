"""Which style a model's own template, or else its vocabulary, writes tool calls in."""

from collections.abc import Container

from engine.text.tools.deepseek import DeepSeek
from engine.text.tools.hermes import Hermes
from engine.text.tools.llama import Llama
from engine.text.tools.mistral import ARGS, Mistral
from engine.text.tools.style import ToolStyle


def choose_style(template: str, vocabulary: Container[str]) -> ToolStyle:
    """Hermes, the most common one, where nothing tells another."""
    styles: tuple[ToolStyle, ...] = (
        DeepSeek(fenced="```json" in template),
        Mistral(named=ARGS in template),
        Hermes(),
        Llama(),
    )
    for style in styles:
        if any(sign in template for sign in style.signs):
            return style
    if "<|start_header_id|>" in template and '"parameters"' in template:
        return Llama()
    known = (style for style in styles if style.markers[0] in vocabulary)
    return next(known, Hermes())
