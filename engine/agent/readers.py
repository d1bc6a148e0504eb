"""Which reader reads which source. Its library is loaded by the first source that needs it."""

from monitoring.probes.outside import Reader
from monitoring.sources import MeterSource, MicrophoneSource, PduSource, RedfishSource

PolledSource = RedfishSource | PduSource | MeterSource | MicrophoneSource
"""Those that somebody has to be asked for."""


def reader_of(source: PolledSource) -> Reader:
    match source:
        case RedfishSource():
            from monitoring.probes.redfish.reader import RedfishReader

            return RedfishReader(source)
        case PduSource():
            from monitoring.probes.pdu.reader import PduReader

            return PduReader(source)
        case MicrophoneSource():
            from monitoring.probes.sound.microphone import Microphone

            return Microphone(source)
        case MeterSource(protocol="hid-gm1356"):
            from monitoring.probes.sound.hid import HidMeter

            return HidMeter(source)
        case MeterSource():
            from monitoring.probes.sound.meter import SerialMeter

            return SerialMeter(source)
