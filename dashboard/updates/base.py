"""What a step of an update answers."""

from datetime import timedelta

import msgspec

from dashboard.choices import UpdateState
from dashboard.errors import TandemError
from dashboard.sentences import Sentence


class UpdateFailed(TandemError):
    """It cannot go on; the sentence names cause and remedy, and the node is held."""


class Wait(msgspec.Struct, frozen=True):
    """Look again in `seconds`; no worker waits meanwhile."""

    seconds: float
    text: Sentence = Sentence()
    percent: float | None = None


class Go(msgspec.Struct, frozen=True):
    to: UpdateState
    text: Sentence
    deadline: timedelta


class Complete(msgspec.Struct, frozen=True):
    text: Sentence


Outcome = Wait | Go | Complete
