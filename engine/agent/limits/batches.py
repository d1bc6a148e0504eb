"""Holds the heads on this node to what is wanted, and tells a head again that was started anew."""

import asyncio
from collections.abc import Mapping

import aiohttp

from engine.agent.heads import Heads, HeadView
from engine.drivers.base import NoAnswer
from engine.errors import Said, said
from engine.errors import gettext_noop as _
from engine.protocol.agent import LimitState

NOT_HERE = _("Its head does not run on this node now.")
NOT_YET = _("Its head has not been told yet.")
NO_WAY = _("This engine takes no limit from outside; use a power limit instead.")

Told = tuple[int, int | None]
"""The head's restarts when it was told, and what."""


class Batches:
    def __init__(self, heads: Heads) -> None:
        self._heads = heads
        self._told: dict[str, Told] = {}
        self._outcomes: dict[str, tuple[int | None, Said]] = {}

    async def settle(self, http: aiohttp.ClientSession, caps: Mapping[str, int]) -> None:
        """Tell every head that does not know; those that do not answer are told later."""
        living = self._heads.living()
        launches = {view.process.spec.launch for view in living}
        for known in (self._told, self._outcomes):
            for launch in known.keys() - launches:
                del known[launch]
        await asyncio.gather(*(self._tell(http, view, caps) for view in living))

    def states(self, caps: Mapping[str, int]) -> list[LimitState]:
        living = {view.process.spec.launch for view in self._heads.living()}
        return [self._state(launch, launch in living) for launch in sorted(caps)]

    async def _tell(
        self, http: aiohttp.ClientSession, view: HeadView, caps: Mapping[str, int]
    ) -> None:
        spec, driver = view.process.spec, view.process.driver
        told = (view.process.restarts, caps.get(spec.launch))
        if self._told.get(spec.launch) == told:
            return
        try:
            rows = await driver.hold_batch(http, spec, told[1])
        except NoAnswer as silence:
            self._outcomes[spec.launch] = None, silence.said
            return
        self._told[spec.launch] = told
        self._outcomes[spec.launch] = rows, said(NO_WAY) if rows is None else Said()

    def _state(self, launch: str, living: bool) -> LimitState:
        rows, reason = self._outcomes.get(launch, (None, said(NOT_YET)))
        if not living:
            rows, reason = None, said(NOT_HERE)
        return LimitState(what="batch", target=launch, value=rows, reason=reason)
