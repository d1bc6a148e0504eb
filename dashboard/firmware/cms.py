"""A detached CMS signature (RFC 5652): who signed what, not yet whether it is true. Pure."""

from dataclasses import dataclass

from dashboard.firmware.der import OCTETS, SEQUENCE, SET, DerError, Value, read

SIGNED_DATA = "1.2.840.113549.1.7.2"
CONTENT_TYPE = "1.2.840.113549.1.9.3"
MESSAGE_DIGEST = "1.2.840.113549.1.9.4"
DIGESTS = {
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}
EXPLICIT_0, CERTIFICATES, CRLS, ATTRIBUTES = 0xA0, 0xA0, 0xA1, 0xA0


@dataclass(frozen=True)
class Signer:
    digest: str
    """`sha256`, ...; empty for one that is not taken."""
    attributes: bytes | None
    """What is signed, where it is not the digest of the content itself."""
    told_digest: bytes
    """The content's, as the attributes tell it."""
    signature: bytes


def signers_of(message: bytes) -> tuple[list[Signer], list[bytes]]:
    """The signers, and the certificates beside them (DER). Raises DerError for anything else than
    a detached signature."""
    kind, wrapped = _exactly(read(message).expect(SEQUENCE), 2)
    if kind.oid != SIGNED_DATA:
        raise DerError("no signed data")
    parts = read(wrapped.expect(EXPLICIT_0).content).expect(SEQUENCE).parts()
    if len(parts) < 4:
        raise DerError("too short")
    if len(parts[2].expect(SEQUENCE).parts()) != 1:
        raise DerError("the content is inside: the signature is not detached")
    enclosed: list[bytes] = []
    for part in parts[3:-1]:
        if part.tag == CERTIFICATES:
            enclosed = [each.whole for each in part.parts() if each.tag == SEQUENCE]
    return [_signer(each) for each in parts[-1].expect(SET).parts()], enclosed


def _signer(value: Value) -> Signer:
    parts = value.expect(SEQUENCE).parts()
    if len(parts) < 5:
        raise DerError("too short a signer")
    digest = DIGESTS.get(_algorithm(parts[2]), "")
    has_attributes = parts[3].tag == ATTRIBUTES
    if has_attributes and len(parts) < 6:
        raise DerError("too short a signer")
    attributes = parts[3] if has_attributes else None
    signature = parts[5 if has_attributes else 4].expect(OCTETS).content
    if attributes is None:
        return Signer(digest, None, b"", signature)
    # Signed is the set itself, and not the tag that it has here (RFC 5652, 5.4).
    signed = bytes([SET]) + attributes.whole[1:]
    return Signer(digest, signed, _told_digest(attributes), signature)


def _told_digest(attributes: Value) -> bytes:
    told: dict[str, Value] = {}
    for attribute in attributes.parts():
        name, held = _exactly(attribute.expect(SEQUENCE), 2)
        if name.oid in told:
            raise DerError("an attribute twice")
        told[name.oid] = held.expect(SET)
    if CONTENT_TYPE not in told or MESSAGE_DIGEST not in told:
        raise DerError("attributes without the content's digest")
    (digest,) = _exactly(told[MESSAGE_DIGEST], 1)
    return digest.expect(OCTETS).content


def _algorithm(value: Value) -> str:
    parts = value.expect(SEQUENCE).parts()
    if not parts:
        raise DerError("no algorithm")
    return parts[0].oid


def _exactly(value: Value, count: int) -> list[Value]:
    parts = value.parts()
    if len(parts) != count:
        raise DerError(f"{len(parts)} parts where {count} belong")
    return parts
