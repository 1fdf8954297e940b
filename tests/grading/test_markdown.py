import math

from compression_eval.grading.markdown import escaped, number, table, yes_no


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


def test_long_texts_are_cut() -> None:
    assert escaped("x" * 700) == "x" * 599 + "…"
    assert escaped("  x\n") == "x"


def test_what_was_not_measured_is_a_dash() -> None:
    assert [number(None), number(math.nan), number(0.0), number(2.345)] == [
        "–",
        "–",
        "0.00",
        "2.35",
    ]
    assert [yes_no(None), yes_no(True), yes_no(False)] == ["–", "yes", "no"]
