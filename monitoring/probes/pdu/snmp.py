"""Questions to an SNMP agent, v2c or v3, from one thread with an event loop of its own."""

import asyncio
from collections.abc import Sequence
from typing import Any

from pysnmp.error import PySnmpError
from pysnmp.hlapi.v3arch.asyncio import (
    CommunityData,
    ContextData,
    ObjectIdentity,
    ObjectType,
    SnmpEngine,
    UdpTransportTarget,
    UsmUserData,
    get_cmd,
    usmAesCfb128Protocol,
    usmAesCfb256Protocol,
    usmDESPrivProtocol,
    usmHMAC192SHA256AuthProtocol,
    usmHMAC384SHA512AuthProtocol,
    usmHMACMD5AuthProtocol,
    usmHMACSHAAuthProtocol,
    usmNoAuthProtocol,
    usmNoPrivProtocol,
)
from pysnmp.proto import errind

from monitoring.probes.outside import SourceError
from monitoring.samples import gettext_noop
from monitoring.sources import PduSource

ANSWER_SECONDS = 2.0
RETRIES = 1
WHOLE_SECONDS = 10.0
AT_ONCE = 20
"""Objects in one question: what fits into one packet of any agent."""

AUTHENTICATION = {
    "md5": usmHMACMD5AuthProtocol,
    "sha": usmHMACSHAAuthProtocol,
    "sha256": usmHMAC192SHA256AuthProtocol,
    "sha512": usmHMAC384SHA512AuthProtocol,
}
PRIVACY = {
    "des": usmDESPrivProtocol,
    "aes128": usmAesCfb128Protocol,
    "aes256": usmAesCfb256Protocol,
}

SILENT = gettext_noop(
    "The PDU did not answer: its address, its community or its list of allowed readers may be "
    "wrong."
)
REFUSED = gettext_noop("The PDU refused the user, the authentication key or the privacy key.")
UNKNOWN_HOST = gettext_noop("The PDU's address is not known to this node.")
FAILED = gettext_noop("The PDU answers with an error.")
BAD_KEYS = gettext_noop("An SNMP key must have at least eight characters.")

_SILENCE = (errind.RequestTimedOut, errind.EmptyResponse)
_REFUSALS = (
    errind.AuthenticationError,
    errind.AuthenticationFailure,
    errind.DecryptionError,
    errind.EncryptionError,
    errind.UnknownSecurityName,
    errind.UnknownUserName,
    errind.UnsupportedSecurityLevel,
    errind.WrongDigest,
)


class Snmp:
    """One engine, kept: with v3 it learns the agent's identity and time once."""

    def __init__(self, source: PduSource) -> None:
        self._source = source
        self._runner = asyncio.Runner()
        self._engine: Any = None
        self._target: Any = None

    def get(self, oids: Sequence[str]) -> dict[str, int | None]:
        """Whole numbers by identifier; None where the agent has none. Raises SourceError."""
        try:
            return self._runner.run(self._get(oids))
        except TimeoutError as error:
            raise SourceError(SILENT) from error
        except (OSError, PySnmpError) as error:
            raise SourceError(FAILED) from error

    def close(self) -> None:
        if self._engine is not None:
            self._runner.run(self._end())
        self._runner.close()

    async def _end(self) -> None:
        self._engine.close_dispatcher()

    async def _get(self, oids: Sequence[str]) -> dict[str, int | None]:
        async with asyncio.timeout(WHOLE_SECONDS):
            if self._target is None:
                self._target = await self._look_up()
            answers: dict[str, int | None] = {}
            for start in range(0, len(oids), AT_ONCE):
                answers |= await self._ask(oids[start : start + AT_ONCE])
            return answers

    async def _look_up(self) -> Any:
        self._engine = self._engine or SnmpEngine()
        place = self._source.host, self._source.port
        try:
            return await UdpTransportTarget.create(place, timeout=ANSWER_SECONDS, retries=RETRIES)
        except (OSError, PySnmpError) as error:
            raise SourceError(UNKNOWN_HOST) from error

    async def _ask(self, oids: Sequence[str]) -> dict[str, int | None]:
        asked = [ObjectType(ObjectIdentity(oid)) for oid in oids]
        error, status, _index, bindings = await get_cmd(
            self._engine,
            _credentials(self._source),
            self._target,
            ContextData(),
            *asked,
            lookupMib=False,
        )
        if error is not None:
            raise SourceError(_reason(error))
        if status:
            raise SourceError(FAILED)
        return {oid: _whole(value) for oid, (_name, value) in zip(oids, bindings, strict=False)}


def _credentials(source: PduSource) -> Any:
    if source.community:
        return CommunityData(source.community, mpModel=1)
    for key in (source.auth_key, source.privacy_key):
        if key and len(key) < 8:
            raise SourceError(BAD_KEYS)
    return UsmUserData(
        source.user,
        authKey=source.auth_key or None,
        privKey=source.privacy_key or None,
        authProtocol=AUTHENTICATION[source.auth_protocol] if source.auth_key else usmNoAuthProtocol,
        privProtocol=PRIVACY[source.privacy_protocol] if source.privacy_key else usmNoPrivProtocol,
    )


def _reason(error: Any) -> str:
    if isinstance(error, _SILENCE):
        return SILENT
    return REFUSED if isinstance(error, _REFUSALS) else FAILED


def _whole(value: Any) -> int | None:
    """None for `noSuchInstance` and its like, which are not numbers."""
    try:
        return int(value)
    except (TypeError, ValueError, AttributeError):
        return None
