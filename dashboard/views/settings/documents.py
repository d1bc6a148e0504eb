"""The reference of all settings, and the configuration as a file."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext
from django.views.decorators.http import require_http_methods, require_safe

from dashboard import declaring
from dashboard.audit import actor_of
from dashboard.configuration.declared import Words
from dashboard.configuration.reference import chapters, words_of
from dashboard.declaring import Change, DocumentRefused
from dashboard.declaring.problems import Problem
from dashboard.declaring.reading import MOST_BYTES
from dashboard.errors import TandemError
from dashboard.sentences import Sentence
from dashboard.views.access import admin_required, hidden_of, operator_required

NO_TEXT = gettext_noop("This file is no text of at most 1 MB.")


@dataclass(frozen=True)
class Entered:
    text: str
    prune: bool
    found: list[Change] | None = None
    """None: not compared yet."""
    problems: tuple[Problem, ...] = ()


@login_required
@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    return render(request, "settings/reference.html", {"chapters": chapters()})


@operator_required
@require_safe
def document(request: HttpRequest) -> HttpResponse:
    """The configuration now, as a download."""
    response = HttpResponse(
        declaring.export(hidden_of(request)), content_type="application/yaml; charset=utf-8"
    )
    response.headers["Content-Disposition"] = 'attachment; filename="tandem.yaml"'
    return response


@admin_required
@require_http_methods(["GET", "POST"])
def as_file(request: HttpRequest) -> HttpResponse:
    """What has drifted; a document compared with what is, and applied."""
    if request.method != "POST":
        return _page(request, Entered("", False))
    prune = "prune" in request.POST
    text = request.POST.get("document", "")
    try:
        text = _text(request)
        loaded = declaring.load(text)
        if "apply" not in request.POST:
            return _page(request, Entered(text, prune, declaring.changes(loaded, prune=prune)))
        why = request.POST.get("why", "").strip()[:300] or _("As a file")
        done = declaring.apply(loaded, actor_of(request), prune=prune, why=why)
    except DocumentRefused as refused:
        return _page(request, Entered(text, prune, problems=tuple(refused.problems)))
    except TandemError as refused:
        problem = Problem(0, "", refused.sentence)
        return _page(request, Entered(text, prune, problems=(problem,)))
    messages.success(request, _changed(len(done)))
    return redirect("declared")


def _changed(count: int) -> str:
    if not count:
        return _("Nothing was different.")
    words = ngettext("%(count)s thing was changed.", "%(count)s things were changed.", count)
    return words % {"count": count}


def _text(request: HttpRequest) -> str:
    """Of the file that was chosen, else of the field. Raises DocumentRefused."""
    file = request.FILES.get("file")
    if not isinstance(file, UploadedFile):
        return request.POST.get("document", "")
    try:
        if (file.size or 0) > MOST_BYTES:
            raise ValueError
        return str(file.read().decode("utf-8"))
    except ValueError as error:  # Also what is not UTF-8.
        raise DocumentRefused([Problem(0, "", Sentence(NO_TEXT))]) from error


def _page(request: HttpRequest, entered: Entered) -> HttpResponse:
    return render(
        request,
        "settings/declared.html",
        {
            "document": entered.text or declaring.export(),
            "prune": entered.prune,
            "found": _rows(entered.found),
            "problems": [problem.sentence for problem in entered.problems],
            "drift": declaring.drift(),
        },
        status=422 if entered.problems else 200,
    )


def _rows(found: list[Change] | None) -> list[tuple[Words, Change]] | None:
    if found is None:
        return None
    return [(words_of(change.differences[0].kind), change) for change in found]
