import pytest

from dashboard.templatetags.panel import code


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("What programs put in `model`.", "What programs put in <code>model</code>."),
        ("`a` or `b`", "<code>a</code> or <code>b</code>"),
        ("one ` alone", "one ` alone"),
        ("`<b>`", "<code>&lt;b&gt;</code>"),
    ],
)
def test_names_between_backticks_are_shown_as_code_and_nothing_becomes_markup(
    text: str, shown: str
) -> None:
    assert code(text) == shown
