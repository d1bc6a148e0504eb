"""Chat pages show one's own conversations, whole, and only those."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from dashboard.choices import DeploymentStatus, MessageStatus
from dashboard.models import Conversation
from tests.dashboard.gateway_cast import make_deployment, make_replica, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> Client:
    client = Client()
    client.force_login(make_user("ada"))
    return client


def make_conversation(owner: str = "ada", title: str = "Ducks") -> Conversation:
    user = User.objects.filter(username=owner).first() or make_user(owner)
    conversation = Conversation.objects.create(user=user, title=title, route="smol")
    conversation.messages.create(role="system", content="Speak like a duck.")
    conversation.messages.create(role="user", content="What does <b>it</b> say?")
    conversation.messages.create(
        role="assistant",
        content="It says **quack**.",
        status=MessageStatus.STOPPED,
        metrics={"tokens": 5, "tokens_per_second": 41.26, "ttft_seconds": 0.318},
    )
    return conversation


def test_a_reload_finds_the_conversation_whole(ada: Client) -> None:
    make_deployment()
    page = ada.get(f"/chat/{make_conversation().pk}/").content.decode()
    assert "What does &lt;b&gt;it&lt;/b&gt; say?" in page
    assert "It says <strong>quack</strong>." in page
    assert "41.3 tokens/s" in page
    assert "first token 0.32 s" in page
    assert "Speak like a duck." in page
    assert 'data-status="stopped"' in page


def test_somebody_elses_conversation_is_404(ada: Client) -> None:
    other = make_conversation("bob")
    for path in ("", f"messages/{other.messages.all()[1].pk}/"):
        assert ada.get(f"/chat/{other.pk}/{path}").status_code == 404
    for act in ("rename", "delete"):
        assert ada.post(f"/chat/{other.pk}/{act}/", {"title": "mine"}).status_code == 404
    assert Conversation.objects.get(pk=other.pk).title == "Ducks"


def test_a_conversation_is_renamed_and_deleted(ada: Client) -> None:
    pk = make_conversation().pk
    ada.post(f"/chat/{pk}/rename/", {"title": "  Geese\nand more "})
    assert Conversation.objects.get(pk=pk).title == "Geese and more"
    ada.post(f"/chat/{pk}/delete/")
    assert not Conversation.objects.filter(pk=pk).exists()


def test_search_finds_titles_and_words_of_messages(ada: Client) -> None:
    make_conversation(title="Ducks")
    for words, found in (("duck", True), ("QUACK", True), ("zebra", False)):
        body = ada.get("/chat/conversations/", {"q": words}).content.decode()
        assert ("Ducks" in body) is found, words
        assert body.count("chat-entry") == int(found)


def test_an_answer_whose_writer_is_gone_is_shown_as_stopped(ada: Client) -> None:
    conversation = make_conversation()
    conversation.messages.filter(role="assistant").update(status=MessageStatus.STREAMING)
    page = f"/chat/{conversation.pk}/"
    assert 'data-status="streaming"' in ada.get(page).content.decode()
    earlier = timezone.now() - timedelta(minutes=5)
    Conversation.objects.filter(pk=conversation.pk).update(updated=earlier)
    assert 'data-status="stopped"' in ada.get(page).content.decode()


def test_the_selector_says_why_a_deployment_cannot_answer(ada: Client) -> None:
    make_deployment("big", status=DeploymentStatus.FAILED, reason="Node b is offline.")
    routes = ada.get("/chat/routes/").json()["routes"]
    assert routes[0]["name"] == "big"
    assert routes[0]["ready"] is False
    assert "Node b is offline." in routes[0]["html"]


def test_a_new_conversation_goes_to_the_deployment_used_last(ada: Client) -> None:
    for name in ("apes", "smol"):
        make_replica(make_deployment(name=name, status=DeploymentStatus.READY), 9)
    assert ada.get("/chat/").context["route"] == "apes"
    make_conversation()
    assert ada.get("/chat/").context["route"] == "smol"


def test_without_deployments_the_page_points_the_way(ada: Client) -> None:
    assert "Deploy a model first" in ada.get("/chat/").content.decode()


def test_signed_out_readers_are_sent_to_sign_in() -> None:
    assert Client().get("/chat/").headers["Location"].startswith("/sign-in/")
