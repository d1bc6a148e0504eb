"""A real head with a script, the panel before it, and what a caller brings."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from channels.db import database_sync_to_async

from dashboard.gateway.dialects.anthropic import translate as anthropic
from dashboard.gateway.dialects.responses import translate as responses
from tests.dashboard.gateway_cast import make_deployment, make_key, make_replica, make_user, panel
from tests.engine.bundled import altered_checkpoint
from tests.engine.head_world import MODEL, TOKEN, HeadWorld, head_world

Json = dict[str, Any]
ARGUMENTS = '{"place": "漢字 \\"x\\""}'
CALL = f'<tool_call>\n{{"name": "weather", "arguments": {ARGUMENTS}}}\n</tool_call>'
SCHEMA: Json = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}
THINKING = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.reasoning_content or '' }}"
    "{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n"
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n"
    "{% endif %}{% endif %}"
)
"""A chat template of a model that reasons unless it is told not to."""


@dataclass
class Stage:
    world: HeadWorld | None
    client: aiohttp.ClientSession
    secret: str

    @property
    def url(self) -> str:
        return str(self.client._base_url).rstrip("/")

    async def message(self, said: str, /, **fields: Any) -> Json:
        """Rehearse this answer to a message request; what to ask."""
        asked: Json = {"model": MODEL, "max_tokens": 100} | fields
        await self.rehearse(said, anthropic.chat_of(asked, anthropic.read_asked(asked)))
        return asked

    async def response(self, said: str, /, **fields: Any) -> Json:
        asked: Json = {"model": MODEL} | fields
        await self.rehearse(said, responses.chat_of(asked, responses.read_asked(asked)))
        return asked

    async def rehearse(self, text: str, chat: Json) -> None:
        world = self.world
        assert world is not None
        status, told = await world.post("/tokenize", **chat)
        assert status == 200, told
        tokens = world.tokenizer.encode_trusted(f"{text}<|im_end|>")
        start = told["count"] % len(tokens)
        world.speaker.tokens = tokens[-start:] + tokens[:-start] if start else tokens


@asynccontextmanager
async def staged(template: str = "") -> AsyncIterator[Stage]:
    checkpoint = altered_checkpoint(template=template) if template else None
    async with head_world(checkpoint=checkpoint) as world:
        secret = await database_sync_to_async(_stage)(world.front.address.port)
        async with panel(secret) as client:
            yield Stage(world, client, secret)


def _stage(port: int) -> str:
    _key, secret = make_key(make_user())
    make_replica(make_deployment(name=MODEL), port, token=TOKEN)
    return secret
