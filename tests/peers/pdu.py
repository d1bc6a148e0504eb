"""A PDU on loopback: an SNMP agent, v2c and v3, whose outlets tests set."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pysnmp.carrier.asyncio.dgram import udp
from pysnmp.entity import config, engine
from pysnmp.entity.rfc3413 import cmdrsp, context
from pysnmp.proto.api import v2c
from pysnmp.smi import instrum

COMMUNITY, USER = "lab-metering", "meter"
AUTH_KEY, PRIVACY_KEY = "authentic-enough", "private-enough"


@dataclass
class Pdu:
    port: int = 0
    numbers: dict[str, int] = field(default_factory=dict)
    """Object identifier -> value."""
    asked: list[str] = field(default_factory=list)


@contextmanager
def serve(**numbers: int) -> Iterator[Pdu]:
    pdu = Pdu(numbers=dict(numbers))
    ready, loop = threading.Event(), asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(pdu, loop, ready), daemon=True)
    thread.start()
    assert ready.wait(10), "the PDU is there"
    try:
        yield pdu
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


def _run(pdu: Pdu, loop: asyncio.AbstractEventLoop, ready: threading.Event) -> None:
    asyncio.set_event_loop(loop)
    agent = loop.run_until_complete(_open(pdu))
    ready.set()
    loop.run_forever()
    agent.close_dispatcher()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


async def _open(pdu: Pdu) -> Any:
    agent = engine.SnmpEngine()
    transport = udp.UdpTransport().open_server_mode(("127.0.0.1", 0))
    config.add_transport(agent, udp.DOMAIN_NAME, transport)
    config.add_v1_system(agent, "area", COMMUNITY)
    config.add_v3_user(
        agent,
        USER,
        config.USM_AUTH_HMAC96_SHA,
        AUTH_KEY,
        config.USM_PRIV_CFB128_AES,
        PRIVACY_KEY,
    )
    config.add_vacm_user(agent, 2, "area", "noAuthNoPriv", (1, 3, 6), ())
    config.add_vacm_user(agent, 3, USER, "authPriv", (1, 3, 6), ())
    place = context.SnmpContext(agent)
    place.unregister_context_name(v2c.OctetString(""))
    place.register_context_name(v2c.OctetString(""), _Outlets(pdu))
    cmdrsp.GetCommandResponder(agent, place)
    while transport.transport is None:  # The socket is opened by a task.
        await asyncio.sleep(0.005)
    pdu.port = transport.transport.get_extra_info("sockname")[1]
    return agent


class _Outlets(instrum.AbstractMibInstrumController):  # type: ignore[misc]  # pysnmp is untyped
    def __init__(self, pdu: Pdu) -> None:
        self._pdu = pdu

    def read_variables(self, *bindings: Any, **_: Any) -> list[Any]:
        return [(name, self._value(str(name))) for name, _value in bindings]

    def _value(self, oid: str) -> Any:
        self._pdu.asked.append(oid)
        if oid not in self._pdu.numbers:
            return v2c.NoSuchInstance("")
        return v2c.Integer32(self._pdu.numbers[oid])
