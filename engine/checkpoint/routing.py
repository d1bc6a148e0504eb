"""What every declaration of expert routing has to satisfy."""

from engine.checkpoint.declared import Declared
from engine.errors import gettext_noop as _


def check_groups(declared: Declared, count: int, chosen: int, groups: int, top: int) -> None:
    """Equal groups, of which enough are kept to choose from."""
    if count % groups or not 1 <= top <= groups or chosen > count // groups * top:
        raise declared.refuse(
            _("%(chosen)s of %(count)s experts in %(top)s of %(groups)s groups cannot be chosen"),
            chosen=chosen,
            count=count,
            top=top,
            groups=groups,
        )
