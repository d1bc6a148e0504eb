"""What Prometheus and Grafana need to show the fleet, to take along: with this panel's address."""

from pathlib import Path

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.http import require_GET

import monitoring

FOLDER = Path(monitoring.__file__).parent / "grafana"
FILES = {
    "tandem.json": "application/json",
    "dashboards.yml": "application/yaml",
    "datasource.yml": "application/yaml",
    "prometheus.yml": "application/yaml",
}


@login_required
@require_GET
def export_file(request: HttpRequest, name: str) -> HttpResponse:
    if name not in FILES:
        raise Http404
    text = (FOLDER / name).read_text()
    if name == "prometheus.yml":
        text = text.replace("127.0.0.1:8000", request.get_host())
        text = text.replace("scheme: http", f"scheme: {request.scheme}")
    answer = HttpResponse(text, content_type=FILES[name])
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


urlpatterns = [path("export/<str:name>", export_file, name="export-file")]
