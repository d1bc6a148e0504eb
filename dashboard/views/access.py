"""Who may look and who may operate: everybody signed in looks, staff operate."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def may_operate(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_staff)


def operator_required(view: View[P]) -> View[P]:
    """Signed out: to the sign-in page. Signed in without the role: 403 that says who can help."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not may_operate(request):
            raise PermissionDenied(
                _("Your account may look but not operate. Ask an administrator for staff status.")
            )
        return view(request, *args, **kwargs)

    return login_required(guarded)
