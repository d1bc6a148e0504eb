"""Pages that only administrators may change."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def is_admin(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


def admin_required(view: View[P]) -> View[P]:
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not is_admin(request):
            raise PermissionDenied(_("Only an administrator may do this."))
        return view(request, *args, **kwargs)

    return login_required(guarded)
