"""Answers become Markdown, never markup of their own."""

import pytest

from dashboard.rendering import render_markdown


def test_code_keeps_its_language_and_its_angle_brackets() -> None:
    html = render_markdown("```python\nif a < b:\n    pass\n```")
    assert '<code class="language-python">if a &lt; b:' in html


def test_tables_lists_and_emphasis_are_drawn() -> None:
    html = render_markdown("|a|b|\n|-|-|\n|1|2|\n\n- **x**\n- ~~y~~")
    assert "<td>1</td>" in html
    assert "<strong>x</strong>" in html
    assert "<s>y</s>" in html


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![pixel](https://example.org/pixel.png)",
        "<a href='https://example.org' onclick='alert(1)'>x</a>",
    ],
)
def test_nothing_runs_or_loads(text: str) -> None:
    html = render_markdown(text)
    for bad in ("<script", "<img", 'href="javascript', 'href="data', "<a href='"):
        assert bad not in html


def test_links_leave_without_a_referrer() -> None:
    html = render_markdown("[site](https://example.org)")
    assert 'rel="noopener noreferrer nofollow"' in html
    assert 'target="_blank"' in html
