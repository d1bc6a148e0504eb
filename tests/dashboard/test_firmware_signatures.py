"""A vendor's signature counts when a trusted key made it over this very file."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import pkcs7
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from dashboard.firmware.cms import signers_of
from dashboard.firmware.der import DerError, read
from dashboard.firmware.errors import ImageRefused
from dashboard.firmware.signatures import fingerprint, is_signed_by, load_key

CONTENT = b"firmware " * 1000
RSA = rsa.generate_private_key(65537, 2048)
EC = ec.generate_private_key(ec.SECP384R1())
ED = ed25519.Ed25519PrivateKey.generate()
PSS = padding.PSS(padding.MGF1(hashes.SHA512()), padding.PSS.MAX_LENGTH)
SIGNED: dict[str, tuple[Any, bytes]] = {
    "ed25519": (ED, ED.sign(CONTENT)),
    "rsa": (RSA, RSA.sign(CONTENT, padding.PKCS1v15(), hashes.SHA256())),
    "rsa-pss": (RSA, RSA.sign(CONTENT, PSS, hashes.SHA512())),
    "ecdsa": (EC, EC.sign(CONTENT, ec.ECDSA(hashes.SHA384()))),
}


def pem(key: Any) -> str:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    encoded: bytes = key.public_key().public_bytes(serialization.Encoding.PEM, form)
    return encoded.decode()


def certificate(key: Any, by: Any, issuer: str, name: str, ca: bool) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(by, hashes.SHA256())
    )


CA_KEY = ec.generate_private_key(ec.SECP256R1())
CA = certificate(CA_KEY, CA_KEY, "Vendor", "Vendor", ca=True)
LEAF = certificate(RSA, CA_KEY, "Vendor", "Signer", ca=False)


def as_pem(held: x509.Certificate) -> str:
    return held.public_bytes(serialization.Encoding.PEM).decode()


def cms(
    encoding: serialization.Encoding = serialization.Encoding.DER,
    options: tuple[pkcs7.PKCS7Options, ...] = (),
    content: bytes = CONTENT,
) -> bytes:
    wanted = [pkcs7.PKCS7Options.DetachedSignature, pkcs7.PKCS7Options.Binary, *options]
    builder = pkcs7.PKCS7SignatureBuilder().set_data(content)
    return builder.add_signer(LEAF, RSA, hashes.SHA256()).sign(encoding, wanted)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "image"
    path.write_bytes(CONTENT)
    return path


@pytest.mark.parametrize("kind", SIGNED)
@pytest.mark.parametrize("form", [bytes, base64.b64encode, base64.encodebytes])
def test_a_true_signature_is_known_in_every_form(
    image: Path, kind: str, form: Callable[[bytes], bytes]
) -> None:
    key, signature = SIGNED[kind]
    assert is_signed_by(image, form(signature), pem(key))


@pytest.mark.parametrize("kind", SIGNED)
def test_another_file_another_key_or_one_bit_is_refused(image: Path, kind: str) -> None:
    key, signature = SIGNED[kind]
    other = next(held for name, (held, _s) in SIGNED.items() if type(held) is not type(key))
    assert not is_signed_by(image, signature, pem(other))
    assert not is_signed_by(image, signature[:-1] + bytes([signature[-1] ^ 1]), pem(key))
    image.write_bytes(CONTENT + b"!")
    assert not is_signed_by(image, signature, pem(key))


@pytest.mark.parametrize(
    "message",
    [
        cms(),
        cms(serialization.Encoding.PEM),
        cms(options=(pkcs7.PKCS7Options.NoAttributes,)),
        cms(options=(pkcs7.PKCS7Options.NoCapabilities,)),
    ],
)
@pytest.mark.parametrize("trusted", [as_pem(LEAF), pem(RSA), as_pem(CA)])
def test_a_detached_cms_message_is_read(image: Path, message: bytes, trusted: str) -> None:
    assert is_signed_by(image, message, trusted)
    image.write_bytes(CONTENT + b"!")
    assert not is_signed_by(image, message, trusted)


def test_a_cms_message_of_somebody_else_is_refused(image: Path) -> None:
    assert not is_signed_by(image, cms(), pem(CA_KEY))
    assert not is_signed_by(image, cms(), as_pem(certificate(EC, EC, "Vendor", "Vendor", ca=True)))
    # A certificate that may sign no others vouches for nobody.
    weak = certificate(CA_KEY, CA_KEY, "Vendor", "Vendor", ca=False)
    assert not is_signed_by(image, cms(), as_pem(weak))


def test_a_cms_message_that_holds_its_content_is_not_detached(image: Path) -> None:
    builder = pkcs7.PKCS7SignatureBuilder().set_data(CONTENT)
    signer = builder.add_signer(LEAF, RSA, hashes.SHA256())
    message = signer.sign(serialization.Encoding.DER, [pkcs7.PKCS7Options.Binary])
    assert not is_signed_by(image, message, as_pem(LEAF))


def test_an_old_hash_is_not_taken(image: Path) -> None:
    old = RSA.sign(CONTENT, padding.PKCS1v15(), hashes.SHA1())
    assert not is_signed_by(image, old, pem(RSA))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "neither"),
        ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "neither"),
        ("-----BEGIN PRIVATE KEY-----\nAAAA", "private key"),
        (pem(rsa.generate_private_key(65537, 1024)), "2048"),
    ],
)
def test_what_is_no_key_is_refused(text: str, words: str) -> None:
    with pytest.raises(ImageRefused, match=words):
        load_key(text)


def test_a_certificate_and_its_bare_key_are_one() -> None:
    assert fingerprint(as_pem(LEAF)) == fingerprint(pem(RSA))


@given(st.binary(max_size=200))
def test_rubbish_is_never_read(data: bytes) -> None:
    for reader in (read, signers_of):
        try:
            reader(data)
        except DerError:
            continue


@given(st.integers(0, len(cms()) - 1), st.integers(1, 255))
def test_a_changed_cms_message_breaks_nothing(place: int, change: int) -> None:
    message = bytearray(cms())
    message[place] ^= change
    try:
        signers_of(bytes(message))
    except DerError:
        return
