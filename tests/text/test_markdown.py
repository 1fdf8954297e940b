import math
from html import unescape

import pytest

from compression_eval.text.markdown import escaped, number, pasted, table, yes_no


def test_no_cell_breaks_the_table_or_the_page() -> None:
    nasty = "a|b\n<script>x</script> [l](javascript:x) ![i](http://x) `c` \\| \u2028 $m$ &lt;"
    text = table(["H"], [[nasty], ["plain"]])
    lines = text.splitlines()
    assert len(lines) == 4
    assert [line.count("|") for line in lines] == [2, 2, 2, 2]
    for character in "<>[]`\\$":
        assert character not in lines[2]
    assert "&amp;" not in lines[2]
    assert "&#38;lt;" in lines[2]
    assert lines[3] == "| plain |"


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("ask @octocat now", "@octocat"),
        ("me@example.org", "@example"),
        ("fixed in #12", "#12"),
        ("fixed in octo/repo#12, GH-7", "#12"),
        ("as GH-7 says", "GH-7"),
        ("see https://example.org/x", "://example"),
        ("see www.example.org", "www.e"),
        ("an _emphasised_ word", "_"),
        ("a __dunder__", "_"),
    ],
)
def test_what_is_pasted_calls_nobody_and_links_nothing(text: str, held: str) -> None:
    assert held not in pasted(text)
    shown = unescape(pasted(text)).replace("\u200b", "")
    assert shown == text


def test_what_is_pasted_stays_readable() -> None:
    for text in ("fact_recall 0.3", "401-debug-178", "target_tokens=2000", "a/b.py: 3 - 4 C++"):
        assert pasted(text) == text


def test_no_line_is_broken_and_no_terminal_steered() -> None:
    for character in "\u2028\u2029\x85\x9b\x1b\x00":
        assert escaped(f"a{character}b") in {"a b", "a\ufffdb"}


def test_what_was_not_measured_is_a_dash() -> None:
    assert [number(None), number(math.nan), number(0.0), number(2.345)] == [
        "–",
        "–",
        "0.00",
        "2.35",
    ]
    assert [yes_no(None), yes_no(True), yes_no(False)] == ["–", "yes", "no"]
