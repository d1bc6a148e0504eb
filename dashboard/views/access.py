"""Guards of views: signed out, to the sign-in page; without the role, 403 with who can help."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from dashboard.access import hidden_from, may
from dashboard.choices import Role
from monitoring.scopes import NOTHING, Hidden

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]

LACKING = {
    Role.MEMBER: _("Your account may only look. Ask an administrator for the role of a member."),
    Role.OPERATOR: _("Your account may look but not operate. Ask an administrator for the role."),
    Role.ADMIN: _("Only an administrator may do this."),
}


def may_operate(request: HttpRequest) -> bool:
    return may(request.user, Role.OPERATOR)


def may_administer(request: HttpRequest) -> bool:
    return may(request.user, Role.ADMIN)


def hidden_of(request: HttpRequest) -> Hidden:
    """What the request's person may not see; read once a request."""
    whose: int | None
    known: Hidden
    whose, known = getattr(request, "tandem_hidden", (None, NOTHING))
    if whose is None or whose != request.user.pk:
        known = hidden_from(request.user)
        request.tandem_hidden = (request.user.pk, known)  # type: ignore[attr-defined]  # ours
    return known


def requires(role: Role) -> Callable[[View[P]], View[P]]:
    """The view is for accounts of this role and stronger ones."""

    def guard(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not may(request.user, role):
                raise PermissionDenied(LACKING[role])
            return view(request, *args, **kwargs)

        return login_required(guarded)

    return guard


def member_required(view: View[P]) -> View[P]:
    return requires(Role.MEMBER)(view)


def operator_required(view: View[P]) -> View[P]:
    return requires(Role.OPERATOR)(view)


def admin_required(view: View[P]) -> View[P]:
    return requires(Role.ADMIN)(view)
