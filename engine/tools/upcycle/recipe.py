"""What is asked for, and the one thing that is made up: the routers."""

import msgspec
import numpy as np

from engine.errors import ConfigError
from engine.errors import gettext_noop as _

MAX_EXPERTS = 128


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    experts: int
    per_token: int
    seed: int = 0

    def __post_init__(self) -> None:
        if not 2 <= self.experts <= MAX_EXPERTS:
            raise ConfigError(
                _("A mixture has 2 to %(most)s experts, not %(experts)s."),
                most=MAX_EXPERTS,
                experts=self.experts,
            )
        if not 1 <= self.per_token <= self.experts:
            raise ConfigError(
                _("A token can pass through 1 to %(experts)s experts, not %(per_token)s."),
                experts=self.experts,
                per_token=self.per_token,
            )

    def router(self, layer: int, hidden: int) -> bytes:
        """Little-endian float32 (experts, hidden), the same for the same seed.

        Scaled so that the scores of a normalised token differ by about 1: no expert always wins.
        """
        random = np.random.default_rng([self.seed, layer])
        rows = random.standard_normal((self.experts, hidden)) * hidden**-0.5
        raw: bytes = rows.astype("<f4").tobytes()
        return raw
