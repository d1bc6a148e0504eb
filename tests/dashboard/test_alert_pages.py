"""The pages about alerts: what fires, rules, channels, silences, incidents."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import AuditEntry, Deployment, Node
from monitoring.alerts.bundles import ask
from monitoring.alerts.notify import http
from monitoring.alerts.notify.deliver import Address, address_of
from monitoring.models import Alert, Channel, Delivery, Incident, Maintenance, Rule, Silence
from monitoring.vault import seal
from tests.dashboard.pages_cast import body, make_model, make_node, operator, viewer
from tests.peers.receiver import receiver

__all__ = ["operator", "viewer"]

PAGES = [
    "/monitor/alerts/",
    "/monitor/alerts/rules/",
    "/monitor/alerts/channels/",
    "/monitor/alerts/silences/",
    "/monitor/incidents/",
]


def alert(node: Node | None = None, **values: Any) -> Alert:
    now = timezone.now()
    rule = Rule.objects.get(key="silent-node")
    return Alert.objects.create(
        **{
            "rule": rule,
            "rule_name": rule.name,
            "kind": rule.kind,
            "topic": f"{node.pk}/node" if node else "",
            "node": node,
            "severity": "critical",
            "status": "firing",
            "threshold": 15.0,
            "unit": "seconds",
            "value": 61.0,
            "worst": 61.0,
            "began": now - timedelta(minutes=2),
            "fired": now - timedelta(minutes=1),
            "seen": now.timestamp(),
            **values,
        }
    )


def incident(node: Node, **values: Any) -> Incident:
    opened = timezone.now() - timedelta(minutes=1)
    return Incident.objects.create(
        **{
            "node": node,
            "about": node.name,
            "title": "Silent node",
            "severity": "critical",
            "opened": opened,
            **values,
        }
    )


@pytest.mark.parametrize("path", PAGES)
def test_with_nothing_to_show_every_page_teaches(viewer: Client, path: str) -> None:
    assert "</main>" in body(viewer, path)


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_sees_nothing(db: None, path: str) -> None:
    assert Client().get(path).status_code == 302


def test_what_fires_is_shown_with_value_limit_and_place(viewer: Client) -> None:
    node = make_node("box-1")
    alert(node)
    page = body(viewer, "/monitor/alerts/")
    for text in ("Silent node", "box-1", "61 s", "15 s", "Critical"):
        assert text in page


def test_an_absent_value_is_shown_absent_with_its_reason(viewer: Client) -> None:
    alert(make_node("box-1"), value=None, reason="Nothing has been read for a while.")
    page = body(viewer, "/monitor/alerts/")
    assert "Nothing has been read for a while." in page
    assert "0 s" not in page


def test_the_number_of_alerts_stands_in_the_header_of_every_page(viewer: Client) -> None:
    assert "alert-count" not in body(viewer, "/models/")
    alert(make_node("box-1"))
    assert "1 alert is firing" in body(viewer, "/models/")


def test_overview_and_node_show_what_fires_there(viewer: Client) -> None:
    node, other = make_node("box-1"), make_node("box-2")
    alert(node)
    assert "firing-critical" in body(viewer, "/")
    assert "firing-critical" in body(viewer, f"/nodes/{node.name}/")
    assert "firing-critical" not in body(viewer, f"/nodes/{other.name}/")


def test_a_deployment_shows_what_fires_of_it(viewer: Client) -> None:
    deployment = Deployment.objects.create(name="chat", model=make_model())
    alert(topic="launch:abc", deployment=deployment)
    assert "firing-critical" in body(viewer, "/deployments/chat/")


def test_a_node_in_maintenance_says_so(viewer: Client) -> None:
    node, now = make_node("box-1"), timezone.now()
    Maintenance.objects.create(
        node=node, starts=now, until=now + timedelta(hours=1), reason="New fans.", by="ada"
    )
    assert "New fans." in body(viewer, f"/nodes/{node.name}/")


def test_lookers_may_not_change_anything(viewer: Client) -> None:
    rule = Rule.objects.get(key="noise")
    assert viewer.get(f"/monitor/alerts/rules/{rule.pk}/").status_code == 403
    for path in (
        f"/monitor/alerts/rules/{rule.pk}/off/",
        "/monitor/alerts/silences/new/",
        "/monitor/alerts/maintenance/new/",
    ):
        assert viewer.post(path).status_code == 403
    assert viewer.get("/monitor/alerts/channels/new/slack/").status_code == 403


def test_the_built_in_rules_are_there(viewer: Client) -> None:
    page = body(viewer, "/monitor/alerts/rules/")
    for name in ("Silent node", "Hung rank", "Louder than allowed", "KV cache full"):
        assert name in page
    assert "above 95 % for 5 min" in page


def test_a_rule_is_edited_in_percent_and_gibibytes(operator: Client) -> None:
    rule = Rule.objects.get(key="kv-full")
    form = body(operator, f"/monitor/alerts/rules/{rule.pk}/")
    assert 'value="95"' in form
    assert "In %." in form
    answer = operator.post(f"/monitor/alerts/rules/{rule.pk}/", rule_form(threshold=80, clear=70))
    assert answer.status_code == 302
    rule.refresh_from_db()
    assert (rule.threshold, rule.clear) == (0.8, 0.7)
    assert "edited" in body(operator, "/monitor/alerts/rules/")


def rule_form(**values: Any) -> dict[str, Any]:
    return {
        "name": "KV cache full",
        "severity": "warning",
        "threshold": 95,
        "clear": 90,
        "for_seconds": 60,
        "clear_seconds": 60,
        "enabled": "on",
        **values,
    }


def test_a_built_in_rule_is_put_back_as_it_was(operator: Client) -> None:
    rule = Rule.objects.get(key="kv-full")
    operator.post(f"/monitor/alerts/rules/{rule.pk}/", rule_form(threshold=80, clear=70))
    operator.post(f"/monitor/alerts/rules/{rule.pk}/reset/")
    rule.refresh_from_db()
    assert (rule.threshold, rule.for_seconds) == (0.95, 300)


def test_an_end_beyond_the_threshold_is_refused_at_its_field(operator: Client) -> None:
    rule = Rule.objects.get(key="kv-full")
    answer = operator.post(f"/monitor/alerts/rules/{rule.pk}/", rule_form(threshold=80, clear=85))
    assert answer.status_code == 422
    assert "This must not lie above the threshold." in answer.content.decode()


def test_a_rule_of_ones_own_is_made_and_deleted(operator: Client) -> None:
    address = "/monitor/alerts/rules/new/?kind=metric&metric=power_watts"
    assert "In W." in body(operator, address)
    values = rule_form(name="Hot box", above="True", threshold=400, clear=350, scope="wall")
    assert operator.post(address, values).status_code == 302
    rule = Rule.objects.get(name="Hot box")
    assert (rule.metric, rule.scope, rule.threshold) == ("power_watts", "wall", 400.0)
    operator.post(f"/monitor/alerts/rules/{rule.pk}/delete/")
    assert not Rule.objects.filter(name="Hot box").exists()


def test_a_built_in_rule_cannot_be_deleted(operator: Client) -> None:
    rule = Rule.objects.get(key="noise")
    operator.post(f"/monitor/alerts/rules/{rule.pk}/delete/")
    assert Rule.objects.filter(pk=rule.pk).exists()


def test_a_new_rule_begins_with_what_it_watches_and_no_complaint(operator: Client) -> None:
    answer = operator.get("/monitor/alerts/rules/new/")
    assert answer.status_code == 200
    assert 'role="alert"' not in answer.content.decode()


def test_a_rule_about_a_reading_needs_its_metric(operator: Client) -> None:
    answer = operator.get("/monitor/alerts/rules/new/?kind=metric")
    assert answer.status_code == 422
    assert "Choose the metric that it watches." in answer.content.decode()


def channel_form(**values: Any) -> dict[str, Any]:
    return {
        "name": "ops",
        "language": "en",
        "least": "warning",
        "after_minutes": 0,
        "repeat_minutes": 60,
        "resolved": "on",
        **values,
    }


def test_a_channels_address_is_sealed_and_never_shown(operator: Client) -> None:
    url = "https://hooks.slack.com/services/T0/B0/very-secret"
    operator.post("/monitor/alerts/channels/new/slack/", channel_form(url=url))
    channel = Channel.objects.get()
    assert address_of(channel).url == url
    assert "very-secret" not in channel.sealed
    for path in ("/monitor/alerts/channels/", f"/monitor/alerts/channels/{channel.pk}/"):
        page = body(operator, path)
        assert "hooks.slack.com" in page
        assert "very-secret" not in page


def test_an_address_left_empty_stays_the_one_that_is_stored(operator: Client) -> None:
    url = "https://hooks.slack.com/services/T0/B0/very-secret"
    operator.post("/monitor/alerts/channels/new/slack/", channel_form(url=url))
    channel = Channel.objects.get()
    operator.post(f"/monitor/alerts/channels/{channel.pk}/", channel_form(name="ops 2", url=""))
    channel.refresh_from_db()
    assert (channel.name, address_of(channel).url) == ("ops 2", url)


@pytest.mark.parametrize(
    ("kind", "values", "error"),
    [
        ("webhook", {"url": ""}, "Enter the address that messages are sent to."),
        ("webhook", {"url": "ftp://x/"}, "This is no http:// or https:// address"),
        ("webhook", {"url": "http://169.254.169.254/"}, "Nothing is sent to this address"),
        ("webhook", {"url": "https://a:b@x.example/"}, "Put no user name or password"),
        ("email", {"recipients": ""}, "This field is required|Enter at least one e-mail address."),
        ("email", {"recipients": "ada"}, "is no e-mail address."),
    ],
)
def test_an_address_that_cannot_work_is_refused_at_its_field(
    operator: Client, kind: str, values: dict[str, str], error: str
) -> None:
    answer = operator.post(f"/monitor/alerts/channels/new/{kind}/", channel_form(**values))
    assert answer.status_code == 422
    assert any(part in answer.content.decode() for part in error.split("|"))


def test_a_test_message_is_really_sent_and_its_answer_shown(operator: Client) -> None:
    with receiver() as peer:
        sealed = seal(msgspec.to_builtins(Address(url=peer.url)))
        channel = Channel.objects.create(name="ops", kind="webhook", sealed=sealed)
        answer = operator.post(f"/monitor/alerts/channels/{channel.pk}/test/", follow=True)
    assert len(peer.taken) == 1
    assert "It was taken: 200 ok" in answer.content.decode()
    assert Delivery.objects.get().status == "sent"


def test_an_alert_is_silenced_from_its_row(operator: Client) -> None:
    node = make_node("box-1")
    shown = alert(node)
    address = f"/monitor/alerts/silences/?rule={shown.rule_id}&amp;node={node.pk}"
    assert address in body(operator, "/monitor/alerts/")
    form = {"rule": shown.rule_id, "node": node.pk, "hours": 4, "reason": "Known."}
    assert operator.post("/monitor/alerts/silences/new/", form).status_code == 302
    silence = Silence.objects.get()
    assert (silence.node, silence.by) == (node, "ada")
    assert "Known." in body(operator, "/monitor/alerts/silences/")
    operator.post(f"/monitor/alerts/silence/{silence.pk}/end/")
    silence.refresh_from_db()
    assert silence.until <= timezone.now()


def test_maintenance_names_what_is_worked_on_and_ends_after_it_begins(operator: Client) -> None:
    make_node("box-1")
    form = {"starts": "2026-11-30T12:00", "until": "2026-11-30T11:00", "reason": "Fans."}
    page = operator.post("/monitor/alerts/maintenance/new/", form).content.decode()
    assert "Choose the node or the deployment that is worked on." in page
    assert "It must end after it begins" in page


def test_maintenance_that_has_not_begun_is_taken_away(operator: Client) -> None:
    node, now = make_node("box-1"), timezone.now()
    form = {
        "node": node.pk,
        "starts": (now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M"),
        "until": (now + timedelta(hours=3)).strftime("%Y-%m-%dT%H:%M"),
        "reason": "Fans.",
    }
    assert operator.post("/monitor/alerts/maintenance/new/", form).status_code == 302
    work = Maintenance.objects.get()
    operator.post(f"/monitor/alerts/maintenance/{work.pk}/end/")
    assert not Maintenance.objects.exists()


def test_an_incident_tells_its_story(operator: Client) -> None:
    node = make_node("box-1")
    row = incident(node)
    alert(node, incident=row)
    page = body(operator, f"/monitor/incidents/{row.pk}/")
    for text in ("Silent node", "box-1", "Timeline", "61 s", "Acknowledge"):
        assert text in page
    assert f"/nodes/box-1/?from={int((row.opened - timedelta(minutes=5)).timestamp())}" in page
    assert "Silent node" in body(operator, "/monitor/incidents/")


def test_an_incident_is_taken_on_and_noted(operator: Client) -> None:
    row = incident(make_node("box-1"))
    operator.post(f"/monitor/incidents/{row.pk}/acknowledge/")
    operator.post(f"/monitor/incidents/{row.pk}/note/", {"text": "Cable was loose."})
    page = body(operator, f"/monitor/incidents/{row.pk}/")
    assert "taken on by ada" in page
    assert "Cable was loose." in page


def test_a_post_mortem_is_made_on_demand_and_downloaded(operator: Client) -> None:
    row = incident(make_node("box-1"))
    operator.post(f"/monitor/incidents/{row.pk}/bundle/")
    bundle = row.bundles.get()
    answer = operator.get(f"/monitor/incidents/bundles/{bundle.pk}/")
    assert answer["Content-Type"] == "application/gzip"
    assert answer.content == bytes(bundle.content)
    assert bundle.sha256 in body(operator, f"/monitor/incidents/{row.pk}/")


def test_an_incident_outlives_its_node(operator: Client) -> None:
    node = make_node("box-1")
    row = incident(node)
    ask(row, "ada", timezone.now())
    node.delete()
    assert "box-1 is no longer part of the fleet." in body(
        operator, f"/monitor/incidents/{row.pk}/"
    )


def test_the_trail_says_what_became_of_a_channel_and_nothing_of_a_test(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "send", lambda post: (204, b""))
    url = "https://hooks.slack.com/services/T0/B0/very-secret"
    operator.post("/monitor/alerts/channels/new/slack/", channel_form(url=url))
    at = f"/monitor/alerts/channels/{Channel.objects.get().pk}"
    for action in ("off", "test"):
        operator.post(f"{at}/{action}/")
    told = AuditEntry.objects.filter(action__in=["channel.off", "channel.test"]).order_by("pk")
    assert [(entry.before, entry.after) for entry in told] == [
        ({"on": True}, {"on": False}),
        ({}, {}),
    ]
