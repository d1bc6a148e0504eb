"""What the playground's form becomes in the request, and what it refuses in words."""

import msgspec
import pytest

from dashboard.errors import TandemError
from dashboard.parameters import MAX_SHAPE, Parameters


def test_fields_left_alone_are_not_sent() -> None:
    assert Parameters().fields() == {}


def test_numbers_go_as_they_are_and_a_stop_text_becomes_a_list() -> None:
    asked = Parameters(temperature=0.5, top_k=4, presence_penalty=-1, stop_text="END")
    assert asked.fields() == {
        "temperature": 0.5,
        "top_k": 4,
        "presence_penalty": -1,
        "stop": ["END"],
    }


def test_a_schema_becomes_a_response_format() -> None:
    schema = {"type": "object", "properties": {"名": {"type": "string"}}}
    text = msgspec.json.encode(schema).decode()
    fields = Parameters(answer_form="json_schema", answer_shape=text).fields()
    assert fields["response_format"]["json_schema"]["schema"] == schema


def test_plain_json_needs_no_schema() -> None:
    fields = Parameters(answer_form="json_object", answer_shape="left over").fields()
    assert fields == {"response_format": {"type": "json_object"}}


def test_an_expression_becomes_a_structured_output() -> None:
    fields = Parameters(answer_form="regex", answer_shape="yes|no").fields()
    assert fields == {"structured_outputs": {"regex": "yes|no"}}


@pytest.mark.parametrize(
    ("form", "shape", "said"),
    [
        ("json_schema", "{", "not valid JSON"),
        ("json_schema", "[1]", "is an object"),
        ("json_schema", "[" * 40_000, "not valid JSON"),
        ("regex", "", "Write the regular expression"),
        ("regex", "a" * (MAX_SHAPE + 1), "at most"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(form: str, shape: str, said: str) -> None:
    asked = msgspec.convert({"answer_form": form, "answer_shape": shape}, Parameters)
    with pytest.raises(TandemError, match=said):
        asked.fields()
