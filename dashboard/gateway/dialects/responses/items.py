"""The items of a response, and the events that tell of them."""

from typing import Any

from dashboard.gateway.dialects.parts import Part

Json = dict[str, Any]

KINDS = {"text": "msg", "reasoning": "rs", "call": "fc"}


class Items:
    """Of one response."""

    def __init__(self, number: str) -> None:
        self._number = number

    def id_of(self, part: Part) -> str:
        return f"{KINDS[part.kind]}_{self._number}_{part.index}"

    def item(self, part: Part, status: str) -> Json:
        """As it is so far; empty while it begins."""
        item: Json = {"id": self.id_of(part), "status": status}
        match part.kind:
            case "call":
                call = {"call_id": part.id, "name": part.name, "arguments": part.text}
                return item | {"type": "function_call", **call}
            case "reasoning":
                content = [content_of(part)] if part.texts else []
                return item | {"type": "reasoning", "summary": [], "content": content}
        content = [content_of(part)] if part.texts else []
        return item | {"type": "message", "role": "assistant", "content": content}

    def opened(self, part: Part) -> list[Json]:
        empty = Part(part.kind, part.index, part.id, part.name)
        item = self.item(empty, "in_progress")
        place: Json = {"output_index": part.index}
        events = [{"type": "response.output_item.added", **place, "item": item}]
        if part.kind != "call":
            place |= {"item_id": item["id"], "content_index": 0}
            events.append(
                {"type": "response.content_part.added", **place, "part": content_of(empty)}
            )
        return events

    def grew(self, part: Part, text: str, scores: list[Any]) -> list[Json]:
        event: Json = {"type": _delta_type(part), "output_index": part.index, "delta": text}
        event["item_id"] = self.id_of(part)
        if part.kind != "call":
            event["content_index"] = 0
        if part.kind == "text":
            event["logprobs"] = scores
        return [event]

    def closed(self, part: Part, status: str) -> list[Json]:
        place: Json = {"output_index": part.index, "item_id": self.id_of(part)}
        kind = _delta_type(part).removesuffix("delta") + "done"
        item = self.item(part, status)
        ended = {
            "type": "response.output_item.done",
            "output_index": part.index,
            "item": item,
        }
        if part.kind == "call":
            told = {"name": part.name, "arguments": part.text}
            return [{"type": kind, **place, **told}, ended]
        place["content_index"] = 0
        done: Json = {"type": kind, **place, "text": part.text}
        if part.kind == "text":
            done["logprobs"] = part.scores
        whole = {"type": "response.content_part.done", **place, "part": content_of(part)}
        return [done, whole, ended]


def content_of(part: Part) -> Json:
    if part.kind == "reasoning":
        return {"type": "reasoning_text", "text": part.text}
    return {
        "type": "output_text",
        "text": part.text,
        "annotations": [],
        "logprobs": part.scores,
    }


def _delta_type(part: Part) -> str:
    match part.kind:
        case "text":
            return "response.output_text.delta"
        case "reasoning":
            return "response.reasoning_text.delta"
    return "response.function_call_arguments.delta"
