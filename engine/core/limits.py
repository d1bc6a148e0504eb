"""What a scheduler accepts at all."""

from collections.abc import Collection
from dataclasses import dataclass

from engine.core.request import Request
from engine.errors import RequestError


@dataclass(frozen=True, slots=True)
class Limits:
    capacity: int
    """Longest sequence in tokens, prompt and answer together."""
    max_waiting: int

    def check(self, requests: Collection[Request], waiting: int) -> None:
        """Raises RequestError when one of them could never run or the queue cannot take all."""
        for request in requests:
            self._check_length(request)
        count = len(requests)
        if count > self.max_waiting:
            raise RequestError(
                f"{count} answers at once were asked for; the limit is {self.max_waiting}."
            )
        if waiting + count > self.max_waiting:
            raise RequestError(
                f"{waiting} requests are already waiting; try again later.",
                code="queue_full",
                status=503,
            )

    def holds(self, request: Request) -> bool:
        """Whether it fits into memory from its first token to its last."""
        return len(request.prompt) + request.max_tokens <= self.capacity

    def _check_length(self, request: Request) -> None:
        if not request.prompt:
            raise RequestError("The prompt is empty.", param="prompt")
        if not self.holds(request):
            raise RequestError(
                f"The prompt has {len(request.prompt)} tokens and {request.max_tokens} more were "
                f"asked for; together the limit is {self.capacity}.",
                param="max_tokens",
                code="context_length_exceeded",
            )
