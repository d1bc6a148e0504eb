"""The reference of all settings, and the configuration as a file."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import declared
from dashboard.audit import actor_of
from dashboard.configuration.reference import chapters
from dashboard.declared import Difference, DocumentRefused
from dashboard.errors import TandemError
from dashboard.views.access import admin_required, hidden_of, operator_required


@login_required
@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    return render(request, "settings/reference.html", {"chapters": chapters()})


@operator_required
@require_safe
def document(request: HttpRequest) -> HttpResponse:
    """The configuration now, as a download."""
    response = HttpResponse(
        declared.export(hidden_of(request)), content_type="application/yaml; charset=utf-8"
    )
    response.headers["Content-Disposition"] = 'attachment; filename="tandem.yaml"'
    return response


@admin_required
@require_http_methods(["GET", "POST"])
def as_file(request: HttpRequest) -> HttpResponse:
    """Compare a document with what is, and apply it."""
    text, error = request.POST.get("document", ""), ""
    found: list[Difference] | None = None
    if request.method == "POST":
        try:
            loaded = declared.load(text)
            if "apply" in request.POST:
                changed = declared.apply(loaded, actor_of(request))
                messages.success(request, _("%s settings were changed.") % len(changed))
                return redirect("declared")
            found = declared.differences(loaded)
        except (DocumentRefused, TandemError) as refused:
            error = str(refused)
    return render(
        request,
        "settings/declared.html",
        {"document": text or declared.export(), "found": found, "error": error},
        status=422 if error else 200,
    )
