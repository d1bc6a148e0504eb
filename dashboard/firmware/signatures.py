"""Vendors' signatures: detached, over a file, by a key that an administrator trusts.

Ed25519, RSA (PKCS #1 v1.5 and PSS) and ECDSA with SHA-256 or longer, as bare bytes, as base64, or
inside a detached CMS (PKCS #7) message.
"""

import base64
import binascii
import hashlib
import mmap
import re
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from django.utils.translation import gettext_noop as _

from dashboard.firmware.cms import SIGNED_DATA, Signer, signers_of
from dashboard.firmware.der import DerError, read
from dashboard.firmware.errors import ImageRefused

PublicKey = Ed25519PublicKey | rsa.RSAPublicKey | ec.EllipticCurvePublicKey
Digests = Mapping[str, bytes]

HASHES: dict[str, hashes.HashAlgorithm] = {
    "sha256": hashes.SHA256(),
    "sha384": hashes.SHA384(),
    "sha512": hashes.SHA512(),
}
LEAST_RSA_BITS = 2048
MOST_SIGNATURE_BYTES = 64 * 1024
CHUNK = 1 << 20

NO_KEY = _("This is neither a public key nor a certificate in PEM form.")
PRIVATE = _("This is a private key; enter the vendor's public key or certificate.")
WEAK = _("Keys of this kind are not taken: Ed25519, ECDSA, or RSA with at least 2048 bits.")


def load_key(pem: str) -> PublicKey:
    """Raises ImageRefused for what is no usable public key or certificate."""
    if "PRIVATE KEY" in pem:
        raise ImageRefused(PRIVATE)
    try:
        certificate = certificate_of(pem)
        key = (
            certificate.public_key()
            if certificate is not None
            else serialization.load_pem_public_key(pem.encode())
        )
    except (ValueError, UnsupportedAlgorithm) as error:
        raise ImageRefused(NO_KEY) from error
    if isinstance(key, rsa.RSAPublicKey) and key.key_size >= LEAST_RSA_BITS:
        return key
    if isinstance(key, Ed25519PublicKey | ec.EllipticCurvePublicKey):
        return key
    raise ImageRefused(WEAK)


def certificate_of(pem: str) -> x509.Certificate | None:
    """None for a bare key; raises ValueError for a broken certificate."""
    if "BEGIN CERTIFICATE" not in pem:
        return None
    return x509.load_pem_x509_certificate(pem.encode())


def fingerprint(pem: str) -> str:
    return hashlib.sha256(_spki(load_key(pem))).hexdigest()


def _spki(key: PublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def digests_of(path: Path) -> Digests:
    """In one reading of the file."""
    sums = {name: hashlib.new(name) for name in HASHES}
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            for each in sums.values():
                each.update(chunk)
    return {name: each.digest() for name, each in sums.items()}


def is_signed_by(path: Path, signature: bytes, pem: str) -> bool:
    """Whether the signature is this key's over the file; broken ones are nobody's."""
    key = load_key(pem)
    plain = _plain(signature)
    if _is_cms(plain):
        return _cms_by(path, plain, key, certificate_of(pem))
    return _bare_by(path, plain, key)


def _plain(signature: bytes) -> bytes:
    """Without PEM lines or base64, if it comes in them."""
    text = re.sub(rb"-----(BEGIN|END) [A-Z0-9 ]+-----", b"", signature)
    try:
        return base64.b64decode(b"".join(text.split()), validate=True)
    except binascii.Error:
        return signature


def _is_cms(signature: bytes) -> bool:
    try:
        parts = read(signature).expect(0x30).parts()
        return bool(parts) and parts[0].oid == SIGNED_DATA
    except DerError:
        return False


def _bare_by(path: Path, signature: bytes, key: PublicKey) -> bool:
    if isinstance(key, Ed25519PublicKey):
        with path.open("rb") as file:
            if not path.stat().st_size:
                return _by_ed25519(key, signature, b"")
            with (
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
                memoryview(content) as view,
            ):
                return _by_ed25519(key, signature, view)
    digests = digests_of(path)
    return any(_by_digest(key, signature, digests[name], name) for name in HASHES)


def _by_ed25519(key: Ed25519PublicKey, signature: bytes, data: bytes | memoryview) -> bool:
    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def _by_digest(
    key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey, signature: bytes, digest: bytes, name: str
) -> bool:
    hashed = Prehashed(HASHES[name])
    if isinstance(key, ec.EllipticCurvePublicKey):
        try:
            key.verify(signature, digest, ec.ECDSA(hashed))
        except InvalidSignature:
            return False
        return True
    salted = padding.PSS(padding.MGF1(HASHES[name]), padding.PSS.AUTO)
    for form in (padding.PKCS1v15(), salted):
        try:
            key.verify(signature, digest, form, hashed)
        except InvalidSignature:
            continue
        return True
    return False


def _cms_by(
    path: Path, message: bytes, key: PublicKey, certificate: x509.Certificate | None
) -> bool:
    """By the key itself, or by a certificate in the message that the trusted one has signed."""
    try:
        signers, enclosed = signers_of(message)
    except DerError:
        return False
    keys = [key, *_issued(enclosed, certificate)]
    digests = digests_of(path)
    return any(_signer_by(signer, each, digests) for signer in signers for each in keys)


def _issued(enclosed: list[bytes], trusted: x509.Certificate | None) -> list[PublicKey]:
    found: list[PublicKey] = []
    for der in enclosed if trusted is not None else []:
        try:
            certificate = x509.load_der_x509_certificate(der)
            assert trusted is not None
            if _may_sign(trusted):
                certificate.verify_directly_issued_by(trusted)
                pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
                found.append(load_key(pem))
        except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm, ImageRefused):
            continue
    return found


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    except (x509.ExtensionNotFound, ValueError):
        return False
    return constraints.value.ca


def _signer_by(signer: Signer, key: PublicKey, digests: Digests) -> bool:
    digest = digests.get(signer.digest)
    if digest is None or (signer.attributes is not None and signer.told_digest != digest):
        return False
    if isinstance(key, Ed25519PublicKey):
        signed = signer.attributes
        return signed is not None and _by_ed25519(key, signer.signature, signed)
    if signer.attributes is not None:
        digest = hashlib.new(signer.digest, signer.attributes).digest()
    return _by_digest(key, signer.signature, digest, signer.digest)
