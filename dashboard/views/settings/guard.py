"""Who may change settings of the panel."""

from functools import wraps

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from dashboard.views.access import P, View


def may_administer(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_superuser)


def admin_required(view: View[P]) -> View[P]:
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not may_administer(request):
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return login_required(guarded)
