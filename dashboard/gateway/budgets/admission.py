"""Whether a request fits the budgets of who asks."""

import asyncio
from typing import Any

import msgspec
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from dashboard.choices import EventLevel
from dashboard.gateway.budgets import told
from dashboard.gateway.budgets.ledger import Entry, ledger
from dashboard.gateway.budgets.limits import KINDS, Limit, Price, most_tokens
from dashboard.gateway.budgets.state import state
from dashboard.gateway.errors import ApiError
from dashboard.gateway.hold import Request
from dashboard.gateway.patience import AWAY, once
from dashboard.gateway.record import Record
from dashboard.lifecycle.record import record as tell
from dashboard.models import ApiKey
from dashboard.sentences import Sentence

LABELS = {
    "requests_minute": gettext_lazy("requests a minute"),
    "requests_day": gettext_lazy("requests a day"),
    "tokens_minute": gettext_lazy("tokens a minute"),
    "tokens_day": gettext_lazy("tokens a day"),
    "money_month": gettext_lazy("money a month"),
}
HEADER = "X-Tandem-Budget-Warning"
META = "tandem.budget_warning"
CONTEXT = 32_768
"""Of a route whose own is not known."""
_telling: set[asyncio.Task[None]] = set()


async def admit(http: HttpRequest, key: ApiKey, asked: Request, record: Record) -> None:
    """Reserve what it may take; 429 where something is used up, 403 for a foreign route."""
    if key.routes and asked.route not in key.routes:
        text = _("This API key may not ask “%(route)s”.") % {"route": asked.route}
        raise ApiError(text, status=403, code="route_not_allowed", param="model")
    now = await state()
    subjects, price = now.subjects(key), now.prices.get(asked.route, Price())
    fields: dict[str, Any] = msgspec.json.decode(asked.body)
    context = now.contexts.get(asked.route, CONTEXT)
    prompt, completion = most_tokens(fields, len(asked.body), context)
    micros = price.micros(prompt, completion)
    entry = Entry(asked.id, record.begun, subjects, prompt + completion, micros)
    limits = now.limits_of(subjects)
    if not limits:
        ledger().add(entry)
    else:
        word, first, second = await ledger().reserve(entry, limits, now.warning)
        if word == b"over":
            raise _exceeded(limits[first], over=bool(second))
        if first:
            limit = limits[first - 1]
            http.META[META] = f"{limit.subject.partition(':')[0]} {limit.kind} {limit.most}"
        if second:
            task = asyncio.get_running_loop().create_task(_warn(limits[second - 1], now.warning))
            _telling.add(task)
            task.add_done_callback(_telling.discard)
    record.charges(price, entry.tokens, entry.micros, ledger().settle)


def _exceeded(limit: Limit, *, over: bool) -> ApiError:
    whose = limit.subject.partition(":")[0]
    amount = f"{limit.most / 1e6:.2f}" if KINDS[limit.kind][0] == "money" else limit.most
    words = {"whose": whose, "most": amount, "kind": LABELS[limit.kind]}
    if over:
        text = _("The budget of this %(whose)s is used up: %(most)s %(kind)s.") % words
    else:
        text = _(
            "Requests that are still being answered may use up the budget of this %(whose)s: "
            "%(most)s %(kind)s. Try again when they are done."
        )
        text %= words
    wait = told.left(limit, timezone.now()) if over else 1
    code = "budget_exceeded" if over else "budget_in_use"
    return ApiError(text, status=429, code=code, param=f"{whose}.{limit.kind}", retry_after=wait)


async def _warn(limit: Limit, percent: int) -> None:
    sentence = Sentence(WARNED, percent=percent, kind=limit.kind, name=limit.name)
    try:
        await once(tell, sentence, level=EventLevel.WARNING)
    except AWAY:
        return  # The header says it too.


WARNED = gettext_noop("%(percent)s%% of a budget of %(name)s is used: %(kind)s.")
