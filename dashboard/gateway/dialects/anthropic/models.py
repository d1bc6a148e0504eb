"""The list of models in Anthropic's shape: pages, newest names last."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _

from dashboard.gateway.dialects.asked import wrong
from dashboard.models import Deployment

USUAL, MOST = 20, 1000


def described(deployment: Deployment) -> dict[str, Any]:
    created = deployment.ready_at or deployment.created
    shape = deployment.model.shape
    return {
        "type": "model",
        "id": deployment.name,
        "display_name": deployment.name,
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": deployment.max_model_len or shape.context_length,
    }


def page(models: Sequence[dict[str, Any]], asked: Mapping[str, str]) -> dict[str, Any]:
    """`asked`: `limit`, `after_id`, `before_id`. Raises ApiError for a limit that is none."""
    limit, names = _limit(asked.get("limit", "")), [model["id"] for model in models]
    first, last = 0, len(models)
    if (after := asked.get("after_id", "")) in names:
        first = names.index(after) + 1
    if (before := asked.get("before_id", "")) in names:
        last = names.index(before)
    found = list(models[first:last])
    # Backwards the page ends where it was asked to; forwards it begins there.
    shown = found[-limit:] if before in names else found[:limit]
    return {
        "data": shown,
        "has_more": len(shown) < len(found),
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
    }


def _limit(text: str) -> int:
    if not text:
        return USUAL
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MOST):
        words = {"most": MOST}
        raise wrong(_("limit must be a number from 1 to %(most)s.") % words, "limit")
    return int(text)
