"""`GET /metrics`: the fleet for Prometheus, for operators or a program with an API key.

`?aliases=vllm` adds vLLM's names for what they mean, as public boards ask for them. They are not
there unasked: their colons are reserved for rules, which `promtool` holds against a page.
"""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from dashboard.gateway.errors import ApiError
from dashboard.gateway.keys import authenticate
from dashboard.standings import Standings
from dashboard.views.access import may_operate
from monitoring.export import prometheus as exporter
from monitoring.export.alerts import FiringAlerts


@require_GET
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    if not may_operate(request):
        try:
            authenticate(request.headers.get("Authorization", ""))
        except ApiError as error:
            refused = HttpResponse(f"{error}\n", status=401, content_type="text/plain")
            refused["WWW-Authenticate"] = "Bearer"
            return refused
    aliases = request.GET.get("aliases", "")
    if aliases not in ("", "vllm"):
        text = f"aliases can only be vllm, not {aliases!r}.\n"
        return HttpResponse(text, status=400, content_type="text/plain")
    page = exporter.render(Standings(), FiringAlerts(), aliases=bool(aliases))
    return HttpResponse(page, content_type=exporter.CONTENT_TYPE)
