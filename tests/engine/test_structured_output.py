"""Answers that must follow a schema do, whatever the model: here one of random weights."""

import json
import re
from dataclasses import dataclass
from typing import Any

import jsonschema
import pytest
from llguidance import LLMatcher

from engine.checkpoint import open_checkpoint
from engine.config import EngineConfig
from engine.protocol.steps import Sampling
from engine.runner.grammar import Grammars
from engine.text.grammar import (
    compile_choice,
    compile_ebnf,
    compile_json_object,
    compile_json_schema,
    compile_regex,
)
from engine.text.tokenizer import TextTokenizer
from tests.engine.json_schemas import Schema, schemas
from tests.engine.local_runner import LocalRunner
from tests.engine.step_maker import Stream
from tests.engine.tiny_model import write_tiny_model

SCHEMAS = schemas(200)
BUDGET = 2000
"""Tokens, here nearly bytes, that an answer may take; few take a tenth of it."""
BATCH = 32


@dataclass(frozen=True)
class Answered:
    grammar: str
    tokens: list[int]
    text: str
    ended: bool
    """Whether it ended by itself, with the end token."""


class Writer:
    """Writes answers in one step loop, many at a time, as a head would ask for them."""

    def __init__(self, path: Any) -> None:
        self.tokenizer = TextTokenizer(open_checkpoint(path).tokenizer)
        self.ends = tuple(self.tokenizer.stop_ids)
        config = EngineConfig(max_batch_size=BATCH, kv_cache_tokens=BATCH * (BUDGET + 32))
        self.runner = LocalRunner(path, config)

    def write(self, grammars: list[str], budget: int = BUDGET) -> list[Answered]:
        streams = [
            self.runner.open(
                [1, 40 + index % 200, 2],
                Sampling(seed=index, grammar=grammar, stop_tokens=self.ends),
            )
            for index, grammar in enumerate(grammars)
        ]
        waiting, running = list(reversed(streams)), list[Stream]()
        while waiting or running:
            while waiting and len(running) < BATCH:
                running.append(waiting.pop())
            counts = [len(stream.tokens) - stream.computed for stream in running]
            result = self.runner.advance(running, counts)
            assert result.failed == [], result.reasons
            for stream in list(running):
                if stream.output[-1] in self.ends or len(stream.output) == budget:
                    self.runner.close(stream)
                    running.remove(stream)
        return [
            self._answered(grammar, stream)
            for grammar, stream in zip(grammars, streams, strict=True)
        ]

    def _answered(self, grammar: str, stream: Stream) -> Answered:
        ended = stream.output[-1] in self.ends
        written = b"".join(map(self.tokenizer.token_bytes, stream.output))
        return Answered(
            grammar, stream.output, written.decode("utf-8", "strict" if ended else "ignore"), ended
        )


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    return Writer(write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf", layers=1))


@pytest.fixture(scope="module")
def answers(writer: Writer) -> list[Answered]:
    return writer.write([compile_json_schema(schema) for schema in SCHEMAS])


def validator(schema: Schema) -> jsonschema.Draft202012Validator:
    formats = jsonschema.FormatChecker(("date", "ipv4", "ipv6", "uuid", "email"))
    return jsonschema.Draft202012Validator(schema, format_checker=formats)


def test_every_answer_ends_and_fits_its_schema(answers: list[Answered]) -> None:
    for schema, answer in zip(SCHEMAS, answers, strict=True):
        assert answer.ended, (schema, answer.text)
        validator(schema).validate(json.loads(answer.text))


@pytest.mark.hazard("grammar-in-step")
def test_every_token_was_allowed_in_its_turn(writer: Writer, answers: list[Answered]) -> None:
    tokenizer = Grammars(lambda: writer.tokenizer).tokenizer
    for answer in answers:
        matcher = LLMatcher(tokenizer, answer.grammar)
        for token in answer.tokens[:-1]:
            assert not matcher.is_stopped(), answer.text
            assert matcher.consume_token(token), answer.text
        assert matcher.is_accepting(), answer.text
        assert answer.tokens[-1] in writer.ends


@pytest.mark.hazard("grammar-in-step")
def test_white_space_is_bounded(answers: list[Answered]) -> None:
    for answer in answers:
        outside = re.sub(r'"(?:[^"\\]|\\.)*"', '""', answer.text)
        assert not re.search(r"[ \n]{22}|\n[ \n]*\n|[\t\r]", outside)


def test_other_forms_are_followed_too(writer: Writer) -> None:
    forms = {
        compile_regex(r"([0-9]{3}-)?[a-f]{2,5}(x|ß|漢)"): r"([0-9]{3}-)?[a-f]{2,5}(x|ß|漢)",
        compile_choice(["yes", "no", "maybe so", '"']): r'yes|no|maybe so|"',
        compile_ebnf(
            'root ::= item ("," item)? "."\nitem ::= [a-z] [0-9]{2}'
        ): r"[a-z][0-9]{2}(,[a-z][0-9]{2})?\.",
        compile_ebnf('start: "<" NAME ">"\nNAME: /[a-z]{1,4}/'): r"<[a-z]{1,4}>",
    }
    answers = writer.write([grammar for grammar in forms for _ in range(8)])
    for index, answer in enumerate(answers):
        assert answer.ended
        assert re.fullmatch(list(forms.values())[index // 8], answer.text), answer.text


def test_an_object_of_any_form_stays_json_until_its_limit(writer: Writer) -> None:
    for answer in writer.write([compile_json_object()] * 4, budget=60):
        assert answer.text.startswith("{")
        if answer.ended:
            assert isinstance(json.loads(answer.text), dict)


def test_a_grammar_that_cannot_be_followed_fails_its_request_alone(writer: Writer) -> None:
    healthy = writer.runner.open([1, 5, 2], Sampling(seed=1))
    broken = [
        writer.runner.open([1, 5, 2], Sampling(seed=1, grammar=grammar))
        for grammar in (
            "start: <|nobody|>",
            "not a grammar",
            '{"grammars": []}',
            'start: start "x"',
        )
    ]
    result = writer.runner.advance([*broken, healthy], [3] * 5)
    assert result.failed == [stream.seq for stream in broken]
    assert all(result.reasons[stream.seq].startswith("The grammar cannot") for stream in broken)
    assert writer.runner.advance([healthy], [1]).failed == []
    for stream in (*broken, healthy):
        writer.runner.close(stream)
