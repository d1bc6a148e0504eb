"""Which layers see only a window of the tokens before them, as config.json declares it."""

from collections.abc import Callable

from engine.checkpoint.declared import Declared
from engine.checkpoint.folder.rope import FULL, SLIDING
from engine.errors import gettext_noop as _

MAX_LAYERS = 10_000


def layer_count(declared: Declared) -> int:
    count = declared.integer("num_hidden_layers")
    if count > MAX_LAYERS:
        raise declared.refuse(_("%(count)s layers cannot be real"), count=count)
    return count


def sliding(declared: Declared, rule: Callable[[int], bool]) -> dict[str, object]:
    """Settings of ModelConfig. `rule` says of a layer whether it slides when no list does."""
    window = declared.get("sliding_window")
    if window is None or declared.get("use_sliding_window") is False:
        return {}
    layers = layer_count(declared)
    kinds = declared.get("layer_types")
    if kinds is None:
        chosen = tuple(layer for layer in range(layers) if rule(layer))
    else:
        chosen = _listed(declared, kinds, layers)
    if not chosen:
        return {}
    return {"sliding_window": declared.integer("sliding_window"), "sliding_layers": chosen}


def check_kinds(declared: Declared) -> None:
    """Refuse a kind of attention that is not computed, e.g. chunked or linear."""
    kinds = declared.get("layer_types")
    if kinds is None:
        return
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in (FULL, SLIDING):
            raise declared.refuse(
                _("attention of kind %(kind)s is not supported; supported: %(known)s"),
                kind=repr(kind)[:60],
                known=f"{FULL}, {SLIDING}",
            )
    if SLIDING in kinds and declared.get("sliding_window") is None:
        raise declared.refuse(_("some layers use a sliding window, but sliding_window is missing"))


def _listed(declared: Declared, kinds: list[str], layers: int) -> tuple[int, ...]:
    if len(kinds) != layers:
        raise declared.refuse(
            _("layer_types lists %(count)s layers, but the model has %(layers)s"),
            count=len(kinds),
            layers=layers,
        )
    return tuple(layer for layer, kind in enumerate(kinds) if kind == SLIDING)
