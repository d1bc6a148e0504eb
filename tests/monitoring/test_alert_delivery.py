"""Messages on their way: taken, tried again, given up."""

import datetime
import ipaddress
import json
import ssl
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.utils import timezone

from monitoring.alerts.notify import http
from monitoring.alerts.notify.deliver import PAUSES, Address, at_work, deliver, try_out
from monitoring.alerts.notify.errors import UndeliverableError
from monitoring.alerts.notify.formats import Post
from monitoring.alerts.notify.message import trial
from monitoring.models import Channel, Delivery
from monitoring.vault import seal
from tests.peers.mail_server import mail_server
from tests.peers.receiver import receiver


def channel(kind: str, **address: object) -> Channel:
    sealed = seal(msgspec.to_builtins(msgspec.convert(address, Address)))
    return Channel.objects.create(name=f"my {kind}", kind=kind, sealed=sealed)


def planned(channel: Channel) -> Delivery:
    now = timezone.now()
    message = trial(channel.name, "en", now)
    return Delivery.objects.create(channel=channel, occasion="opened", message=message, due=now)


@pytest.mark.django_db
def test_a_test_message_arrives_and_the_answer_is_shown() -> None:
    with receiver() as peer:
        delivery = try_out(channel("webhook", url=peer.url, secret="s3cret"))
    assert delivery.status == "sent"
    assert delivery.answer_text == "It was taken: 200 ok"
    [taken] = peer.taken
    assert json.loads(taken.body)["title"] == "[Test] Tandem can reach you"
    assert taken.headers["X-Tandem-Signature"].startswith("t=")


@pytest.mark.django_db
def test_an_answer_that_echoes_the_address_does_not_put_it_on_a_page() -> None:
    with receiver() as peer:
        peer.status, peer.answer = 404, b"no such hook: /hook/token-of-the-address s3cret"
        delivery = try_out(channel("webhook", url=peer.url, secret="s3cret"))
    assert delivery.answer_text == "It was refused: 404 no such hook: … …."


@pytest.mark.django_db
@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_with_a_null_character_is_kept_without_it(status: int) -> None:
    with receiver() as peer:
        peer.status, peer.answer = status, b"o\x00k"
        delivery = try_out(channel("webhook", url=peer.url))
    delivery.refresh_from_db()
    assert f"{status} ok" in delivery.answer_text


@pytest.mark.django_db
def test_what_is_refused_is_tried_again_with_the_same_key_and_longer_pauses() -> None:
    with receiver() as peer:
        peer.status = 503
        delivery = planned(channel("webhook", url=peer.url))
        now = timezone.now()
        assert deliver(now) == 0
        delivery.refresh_from_db()
        assert (delivery.status, delivery.attempts) == ("pending", 1)
        assert delivery.due == now + timedelta(seconds=PAUSES[0])
        assert deliver(now + timedelta(seconds=PAUSES[0] - 1)) == 0
        assert len(peer.taken) == 1
        peer.status = 200
        assert deliver(now + timedelta(seconds=PAUSES[0])) == 1
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("sent", 2)
    assert len({taken.headers["Idempotency-Key"] for taken in peer.taken}) == 1


@pytest.mark.django_db
def test_after_a_day_of_attempts_it_is_given_up_with_its_reason() -> None:
    now = timezone.now()
    with receiver() as peer:
        peer.status = 503
        delivery = planned(channel("webhook", url=peer.url))
        for _ in range(len(PAUSES) + 3):
            deliver(now)
            now += timedelta(days=1)
    delivery.refresh_from_db()
    assert (delivery.status, delivery.attempts) == ("failed", len(PAUSES) + 1)
    assert delivery.answer_text == "It was refused: 503 ok."


@pytest.mark.django_db
def test_a_message_that_a_worker_left_lying_is_taken_up_by_the_next() -> None:
    now = timezone.now()
    with receiver() as peer:
        delivery = planned(channel("webhook", url=peer.url))
        Delivery.objects.filter(pk=delivery.pk).update(attempts=1, due=now + timedelta(seconds=60))
        assert deliver(now) == 0
        assert deliver(now + timedelta(seconds=61)) == 1


@pytest.mark.django_db
def test_slow_receivers_take_up_one_thread_of_a_worker_and_no_more() -> None:
    delivery = planned(channel("webhook", url="http://127.0.0.1:1/"))
    with at_work:
        assert deliver(timezone.now()) == 0
    delivery.refresh_from_db()
    assert delivery.attempts == 0


@pytest.mark.django_db
def test_a_redirect_is_not_followed() -> None:
    with receiver() as elsewhere, receiver() as peer:
        peer.status, peer.location = 302, elsewhere.url
        delivery = try_out(channel("webhook", url=peer.url))
    assert delivery.status == "failed"
    assert "sends elsewhere" in delivery.answer_text
    assert elsewhere.taken == []


@pytest.mark.django_db
def test_a_metadata_address_is_never_asked() -> None:
    delivery = try_out(channel("webhook", url="http://169.254.169.254/latest/meta-data/"))
    assert delivery.status == "failed"
    assert "nothing is sent" in delivery.answer_text


@pytest.mark.django_db
def test_a_secret_of_another_key_is_asked_for_again() -> None:
    sealed = Channel.objects.create(name="old", kind="slack", sealed="gAAAA")
    delivery = try_out(sealed)
    assert "Enter them again." in delivery.answer_text


def test_a_receiver_that_never_answers_is_left_at_the_deadline() -> None:
    with receiver() as peer:
        peer.free.clear()
        with pytest.raises(UndeliverableError, match="did not answer within"):
            http.send(Post(peer.url, b"{}"), seconds=0.3)


def test_nobody_at_home_is_said_so() -> None:
    with receiver() as peer:
        url = peer.url
    with pytest.raises(UndeliverableError, match="cannot be reached: Connection refused"):
        http.send(Post(url, b"{}"))


def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_self_signed(tmp_path))
    with (
        receiver(context) as peer,
        pytest.raises(UndeliverableError, match="not trusted: self-signed certificate"),
    ):
        http.send(Post(peer.url, b"{}"))


def _self_signed(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "receiver")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / "receiver.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.django_db
def test_mail_goes_to_all_recipients_as_text(settings: object) -> None:
    with mail_server() as server:
        _use(settings, server.port)
        delivery = try_out(channel("email", recipients=["ada@example.org", "lin@example.org"]))
    assert delivery.status == "sent", delivery.answer_text
    [mail] = server.taken
    assert mail.recipients == ["ada@example.org", "lin@example.org"]
    assert "Subject: [Test] Tandem can reach you" in mail.text
    assert f"<{delivery.key}@tandem>" in mail.text


@pytest.mark.django_db
def test_a_mail_server_that_refuses_is_quoted(settings: object) -> None:
    with mail_server() as server:
        _use(settings, server.port)
        server.refuses = "ada@example.org"
        delivery = try_out(channel("email", recipients=["ada@example.org"]))
    assert "5.1.1 No such user here" in delivery.answer_text


@pytest.mark.django_db
def test_without_a_mail_server_the_remedy_is_said(settings: object) -> None:
    _use(settings, 0, host="")
    delivery = try_out(channel("email", recipients=["ada@example.org"]))
    assert "TANDEM_SMTP_URL" in delivery.answer_text


def _use(settings: object, port: int, host: str = "127.0.0.1") -> None:
    for name, value in {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": host,
        "EMAIL_PORT": port,
        "EMAIL_USE_TLS": False,
        "EMAIL_USE_SSL": False,
    }.items():
        setattr(settings, name, value)
