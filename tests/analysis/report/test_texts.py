"""Texts of conversations on a page: bounded, drawable, and unable to end their element."""

import json

from compression_eval.analysis.report.html_page import script_json
from compression_eval.analysis.tables import clean


def test_what_can_be_shown_stays() -> None:
    text = "一行目\n\tdef f():\r\n  return '日誌' # é\u3000全角\u00a0👩\u200d💻"
    assert clean(text, 100) == text.replace("\r\n", "\n")
    assert clean(None, 10) == ""


def test_what_no_page_can_show_is_replaced() -> None:
    assert clean("a\x00b\x1b[2Jc\ud800d\u202ee\n\x07", 100) == "a�b�[2Jc�d�e\n�"


def test_a_long_text_is_cut_and_says_so() -> None:
    assert clean("x" * 10_000_000, 5) == "xxxxx… [9,999,995 more characters in the log]"


def test_json_cannot_end_its_element_and_reads_back() -> None:
    data = {"said": "</script><!--<script>&amp;\u2028 日誌", "half": "\ud800"}
    text = script_json(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data
