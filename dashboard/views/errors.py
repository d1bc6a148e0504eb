"""What is said when something breaks that nobody foresaw; the log has the cause."""

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.defaults import server_error as page

from dashboard.gateway.dialects.spoken import error_response
from dashboard.gateway.errors import ApiError


def server_error(request: HttpRequest) -> HttpResponse:
    """A page for people, the caller's dialect for programs."""
    if not request.path.startswith("/v1/"):
        return page(request)
    message = _("Something went wrong on this server; its log has the cause.")
    error = ApiError(message, status=500, code="internal_error")
    return error_response(error, request.path, request.headers)
