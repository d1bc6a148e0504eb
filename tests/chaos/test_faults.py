"""A few faults of the kinds that matter most, while people read: nobody loses or repeats a token,
every answer comes to its end, and nothing is held afterwards."""

import random

import pytest

from tests.chaos.asking import Asker
from tests.chaos.chaos import Chaos, report
from tests.chaos.fleet import Fleet
from tests.chaos.references import undisturbed

pytestmark = [pytest.mark.stack, pytest.mark.model, pytest.mark.timeout(600)]

KINDS = (
    "rank-killed",
    "head-killed",
    "web-killed",
    "agent-killed",
    "rank-stopped",
    "cable-out",
    "postgres-killed",
)
SEED = 4


def test_no_token_is_lost_or_repeated_whatever_dies(
    two_hosts: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(SEED)
    kinds = rng.sample(KINDS, len(KINDS))
    asker = Asker(two_hosts.panel.url, two_hosts.panel.key)
    references = undisturbed(asker, 4, range(48, 65), rng, at_once=4)
    with capsys.disabled():
        print()
        account = Chaos(two_hosts, references, rng, streams=4).run(kinds)
    assert account.clean, report(account)
    assert len(account.waits) == len(KINDS)
