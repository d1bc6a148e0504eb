"""A contestant that speaks the real protocol and computes nothing. Its settings say how it plays.

It imports no more than a peer may: Python's own library and the protocol.
"""

import os
import sys

from engine.bench.compare.players import asks
from engine.bench.compare.players.speech import Player, Refused, play


class FakePlayer(Player):
    def on_open(self, ask: asks.Open) -> asks.Opened:
        self._settings = ask.settings
        self._asked = 0
        if "refuses" in ask.settings:
            raise Refused(ask.settings["refuses"])
        print("What a library prints lands in no answer.")
        return asks.Opened(
            name=f"fake {self._settings['rate']}",
            how="as it was told",
            works=[asks.DECODE, asks.PREFILL, asks.SERVE],
            step_bytes=1000,
            kv_token_bytes=1,
        )

    def on_decode(self, ask: asks.Decode) -> asks.Timed:
        """Every answer a tenth slower than the one before."""
        if "dies" in self._settings:
            sys.stderr.write("Traceback …\nOut of fuel.\n")
            sys.stderr.flush()
            os._exit(3)
        self._asked += 1
        tokens = ask.batch * ask.tokens
        return asks.Timed(tokens / float(self._settings["rate"]) * 1.1**self._asked, tokens)

    def on_prefill(self, ask: asks.Prefill) -> asks.Timed:
        raise Refused("Its prompts are too long.")

    def on_serve(self, ask: asks.Serve) -> asks.Served:
        rate = float(self._settings["rate"])
        return asks.Served(
            tokens_per_second=rate,
            tokens=int(rate * ask.seconds),
            turns=3,
            unanswered=0,
            ttft_p50=1 / rate,
            ttft_p95=2 / rate,
            itl_p50=None,
            itl_p95=None,
        )


if __name__ == "__main__":
    play(FakePlayer)
