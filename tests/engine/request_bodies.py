"""Bodies that no sane client sends, and some that one does; the same for the same seed."""

import json
import random
from typing import Any

Json = dict[str, Any]

TEXTS = (
    "", "x", "Hello <tool_call> </think>", "<|im_end|><|im_start|>system", "\0\x7f\u202e\ufeff",
    "🙂" * 50, "e\u0301\u0327", "[" * 300, '{"a": 1}', "(", "start: (", "a{1,9}", "word " * 80,
    "\ufdd0mark\ufdd1", "auto", "none", "required", "function", "text", "json_object",
    "json_schema", "user", "assistant", "tool", "system", "nan",
)  # fmt: skip
NUMBERS = (
    0, 1, 2, 5, 20, 21, -1, -2, 0.5, 1e308, -1e308, 5e-324, 2**31, 2**63, 2**64, -(2**63), 10**30,
    49151, 49152, True, False,
)  # fmt: skip
FIELDS = (
    "model", "messages", "prompt", "stream", "stream_options", "max_tokens", "n", "best_of",
    "max_completion_tokens", "temperature", "top_p", "top_k", "min_p", "repetition_penalty",
    "presence_penalty", "frequency_penalty", "seed", "logit_bias", "stop", "stop_token_ids",
    "min_tokens", "ignore_eos", "logprobs", "top_logprobs", "prompt_logprobs", "echo", "suffix",
    "response_format", "structured_outputs", "guided_json", "guided_regex", "guided_grammar",
    "guided_choice", "tools", "tool_choice", "parallel_tool_calls", "reasoning_effort",
    "chat_template_kwargs", "continue_final_message", "add_generation_prompt", "documents",
    "priority", "cache_salt", "user", "audio", "modalities", "include_reasoning",
    "skip_special_tokens", "add_special_tokens",
)  # fmt: skip
KEYS = (
    "type", "function", "name", "parameters", "schema", "json_schema", "role", "content",
    "tool_calls", "text", "properties", "$ref", "enum", "pattern", "items", "required", "5",
    "include_usage", "enable_thinking", "json", "regex", "choice", "grammar", "arguments", "id",
)  # fmt: skip


def bodies(count: int, seed: int) -> list[tuple[str, bytes]]:
    """Paths and payloads."""
    random_ = random.Random(seed)
    return [_body(random_) for _ in range(count)]


def _body(r: random.Random) -> tuple[str, bytes]:
    chat = r.random() < 0.6
    body = _sane_chat(r) if chat else _sane_completion(r)
    for _ in range(r.choice((0, 1, 1, 2, 3, 6))):
        body[r.choice(FIELDS)] = _likely(r) if r.random() < 0.4 else _junk(r, 4)
    payload = json.dumps(body, ensure_ascii=r.random() < 0.5).encode("utf-8", "surrogatepass")
    if r.random() < 0.15:
        payload = _damaged(r, payload)
    return "/v1/chat/completions" if chat else "/v1/completions", payload


def _sane_chat(r: random.Random) -> Json:
    body: Json = {"model": "small", "max_tokens": r.randint(1, 12), "stream": r.random() < 0.5}
    body["messages"] = [{"role": "user", "content": r.choice(TEXTS)}]
    if r.random() < 0.3:
        parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}
        function = {"name": "f", "parameters": parameters, "strict": r.random() < 0.5}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = r.choice(("auto", "none", "required"))
    if r.random() < 0.3:
        body |= {"logprobs": True, "top_logprobs": r.randint(0, 20), "n": r.randint(1, 3)}
    return body


def _sane_completion(r: random.Random) -> Json:
    prompt = r.choice(("x", ["a", "b"], [5, 6, 7], [[1, 2], [3]]))
    body: Json = {"model": "small", "prompt": prompt, "max_tokens": r.randint(1, 12)}
    body |= {"stream": r.random() < 0.5, "echo": r.random() < 0.5}
    return body | ({"logprobs": r.randint(0, 20)} if r.random() < 0.5 else {})


def _likely(r: random.Random) -> Any:
    """Nearly right."""
    return r.choice(
        (
            {"type": "json_object"},
            {"type": "json_schema", "json_schema": {"schema": _junk(r, 3)}},
            {"type": "json_schema", "json_schema": {"schema": {"enum": [1, "x", None]}}},
            {"regex": "a+"},
            {"choice": ["yes", "no"]},
            {"5": 3, "6": -100},
            ["x", "y"],
            [{"role": r.choice(TEXTS), "content": _junk(r, 2)}],
            [{"type": "function", "function": _junk(r, 3)}],
            [{"role": "assistant", "tool_calls": _junk(r, 3)}],
            r.randint(0, 20),
            r.random(),
            r.choice(TEXTS),
        )
    )


def _junk(r: random.Random, depth: int) -> Any:
    kind = r.randrange(7 if depth else 4)
    if kind == 0:
        return None
    if kind == 1:
        return r.choice(NUMBERS)
    if kind < 4:
        return r.choice(TEXTS)
    if kind == 4:
        return [_junk(r, depth - 1) for _ in range(r.randrange(4))]
    return {r.choice(KEYS): _junk(r, depth - 1) for _ in range(r.randrange(4))}


def _damaged(r: random.Random, payload: bytes) -> bytes:
    at = r.randrange(len(payload))
    splice = r.choice(
        (
            b"",
            b"\xff",
            b"NaN",
            b"Infinity",
            b"1e999",
            b'"\\ud800"',
            b'"\\udfff\\ud800"',
            b"[" * 2000 + b"]" * 2000,
            b'{"a":' * 500 + b"1" + b"}" * 500,
        )
    )
    if r.random() < 0.5:
        head, colon, rest = payload.rpartition(b": ")
        return head + colon + splice + rest[-1:]
    return payload[:at] + splice + payload[at:]
