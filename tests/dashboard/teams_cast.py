"""A team with one of everything that can belong to it, and people inside and outside of it."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.choices import JobKind, Role
from dashboard.lifecycle.revisions import content_of
from dashboard.models import (
    Account,
    Deployment,
    Event,
    FirmwareImage,
    Job,
    LogLine,
    Node,
    NodeUpdate,
    Revision,
    Rollout,
    Team,
)
from monitoring.models import (
    Alert,
    Bundle,
    Incident,
    LimitSpan,
    Maintenance,
    NodeSource,
    QuietRule,
    Rule,
    Silence,
)
from tests.dashboard.pages_cast import make_launch, make_model, make_node


class Cast:
    """A team with one of everything, and people inside and outside of it."""

    def __init__(self) -> None:
        model = make_model()
        self.open = Deployment.objects.create(name="smol", model=model)
        make_node("box-1")
        self.deployment = Deployment.objects.create(name="hush-model", model=model, wanted=True)
        self.node = make_node("hush-box")
        self.replica = make_launch(self.deployment, self.node)
        self.team = Team.objects.create(name="quiet")
        self.team.deployments.add(self.deployment)
        self.team.nodes.add(self.node)
        self.people = {role: self._person(role) for role in Role}
        self.member = self._person(Role.VIEWER, "inside")
        self.team.members.add(self.member)
        self.pks = self._history()

    def client(self, user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    def _person(self, role: Role, name: str = "") -> User:
        user = User.objects.create_user(name or role.value)
        Account.objects.create(user=user, role=role)
        return user

    def _history(self) -> dict[str, int]:
        now = timezone.now()
        both: dict[str, Any] = {"node": self.node, "deployment": self.deployment}
        Event.objects.create(message="hush-words", **both)
        job = Job.objects.create(
            kind=JobKind.DEPLOY, deployment=self.deployment, generation=1, by="hush-words"
        )
        LogLine.objects.create(node=self.node, source="agent", text="hush-words")
        LogLine.objects.create(
            launch=self.replica.launch,
            node=Node.objects.get(name="box-1"),
            source="head",
            text="hush-words",
        )
        LogLine.objects.create(job=job, source="job", text="hush-words")
        LimitSpan.objects.create(node=self.node, since=now - timedelta(hours=1), why="hush-words")
        incident = Incident.objects.create(
            about="hush-model", title="hush-words", severity="critical", opened=now, **both
        )
        Alert.objects.create(
            rule_name="hush-words",
            kind="metric",
            topic="hush-words",
            severity="critical",
            status="firing",
            threshold=1.0,
            began=now,
            fired=now,
            seen=0.0,
            incident=incident,
            **both,
        )
        bundle = Bundle.objects.create(
            incident=incident, since=now, until=now, completes=now, content=b"x"
        )
        until = now + timedelta(hours=1)
        told: dict[str, Any] = {"starts": now, "until": until, "reason": "hush-words", "by": "ada"}
        silence = Silence.objects.create(**both, **told)
        Maintenance.objects.create(**both, **told)
        rule = Rule.objects.create(
            name="hush-words", kind="silent", severity="warning", threshold=1.0, clear=1.0, **both
        )
        quiet = QuietRule.objects.create(name="hush-words", enabled=False, power_watts=90, **both)
        self._revision_of_deployment()
        Revision.objects.create(node=self.node, number=1, why="hush-words")
        source = NodeSource.objects.create(
            node=self.node, kind="declared-power", name="plug", settings={"watts": 90}
        )
        rollout = self._rollout()
        update = rollout.updates.get()
        return {
            "incident": incident.pk,
            "bundle": bundle.pk,
            "silence": silence.pk,
            "rollout": rollout.pk,
            "update": update.pk,
            "rule": rule.pk,
            "quiet": quiet.pk,
            "source": source.pk,
        }

    def _revision_of_deployment(self) -> Revision:
        content = content_of(self.deployment)
        return Revision.objects.create(
            deployment=self.deployment, number=1, why="hush-words", content=content
        )

    def _rollout(self) -> Rollout:
        image = FirmwareImage.objects.create(
            name="bmc.bin", component="bmc", version="2", sha256="0" * 64, size=1, source="upload"
        )
        rollout = Rollout.objects.create(image=image, token="t", reason="hush-words", by="ada")
        NodeUpdate.objects.create(
            rollout=rollout, node=self.node, part_key="bmc", order=0, to_version="2"
        )
        return rollout
