"""Where alerts are told, and what came of every message."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path, re_path
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from dashboard.audit import actor_of, note
from dashboard.forms.channels import ChannelForm
from dashboard.views.access import may_operate, operator_required
from dashboard.wishes import mail_chosen
from monitoring import wishes
from monitoring.alerts.notify.deliver import try_out
from monitoring.models import Channel, ChannelKind, Delivery, DeliveryStatus

RECENT = 50


@login_required
@require_GET
def channels(request: HttpRequest) -> HttpResponse:
    said = Delivery.objects.select_related("channel", "incident")
    return render(
        request,
        "monitor/alert_channels.html",
        {
            "channels": Channel.objects.all(),
            "deliveries": said[:RECENT],
            "kinds": ChannelKind.choices,
            "mail_ready": mail_chosen(),
            "links": bool(wishes.current().public_url()),
            "may_operate": may_operate(request),
        },
    )


@operator_required
@require_http_methods(["GET", "POST"])
def channel_new(request: HttpRequest, kind: str) -> HttpResponse:
    if kind not in ChannelKind.values:
        raise Http404
    posted = request.POST if request.method == "POST" else None
    return _edit(request, ChannelForm(posted, kind=ChannelKind(kind)))


@operator_required
@require_http_methods(["GET", "POST"])
def channel(request: HttpRequest, pk: int) -> HttpResponse:
    row = get_object_or_404(Channel, pk=pk)
    posted = request.POST if request.method == "POST" else None
    return _edit(request, ChannelForm(posted, instance=row, kind=ChannelKind(row.kind)))


def _edit(request: HttpRequest, form: ChannelForm) -> HttpResponse:
    if form.is_bound and form.is_valid():
        action = "channel.change" if form.instance.pk else "channel.add"
        with transaction.atomic():
            row = form.save()
            told = {"kind": row.kind, "on": row.enabled}
            note(actor_of(request), action, row.name, after=told)
        messages.success(
            request, _("“%(channel)s” is saved. Send a test to see it arrive.") % {"channel": row}
        )
        return redirect("alert-channels")
    return render(
        request,
        "monitor/alert_channel.html",
        {
            "form": form,
            "channel": form.instance if form.instance.pk else None,
            "kind": form.kind,
            "mail_ready": mail_chosen(),
            "lost": bool(form.instance.pk) and form.known is None,
        },
        status=422 if form.errors else 200,
    )


@operator_required
@require_POST
def channel_act(request: HttpRequest, pk: int, action: str) -> HttpResponse:
    row = get_object_or_404(Channel, pk=pk)
    with transaction.atomic():
        before = {} if action == "test" else {"on": row.enabled}
        after = {"on": action == "on"} if action in ("on", "off") else {}
        note(actor_of(request), f"channel.{action}", row.name, before=before, after=after)
        if action == "delete":
            row.delete()
            messages.success(request, _("“%(channel)s” is deleted.") % {"channel": row})
        elif action != "test":
            row.enabled = action == "on"
            row.save(update_fields=["enabled"])
    if action == "test":
        _test(request, row)
    return redirect("alert-channels")


def _test(request: HttpRequest, channel: Channel) -> None:
    """A real message, now; what was answered is shown."""
    delivery = try_out(channel)
    parts = {"channel": channel, "answer": delivery.answer_text}
    if delivery.status == DeliveryStatus.SENT:
        messages.success(request, _("The test for “%(channel)s” is sent. %(answer)s") % parts)
    else:
        messages.error(request, _("The test for “%(channel)s” failed. %(answer)s") % parts)


urlpatterns = [
    path("alerts/channels/", channels, name="alert-channels"),
    path("alerts/channels/new/<slug:kind>/", channel_new, name="alert-channel-new"),
    re_path(r"^alerts/channels/(?P<pk>\d{1,18})/$", channel, name="alert-channel"),
    re_path(
        r"^alerts/channels/(?P<pk>\d{1,18})/(?P<action>on|off|test|delete)/$",
        channel_act,
        name="alert-channel-act",
    ),
]
