"""What is on the page: texts that cannot end their element, links into Inspect's viewer."""

import json
from itertools import product
from pathlib import Path

import pytest
from pandas import DataFrame

from compression_eval.analysis.report import page
from compression_eval.analysis.report.page import script_json, shown_answers, viewer_of


def test_json_cannot_end_its_element_and_reads_back() -> None:
    data = {"said": "</script><!--<script>&amp;\u2028 日誌", "half": "\ud800"}
    text = script_json(data)
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == data


def test_an_address_of_a_file_and_several_folders(tmp_path: Path) -> None:
    first, second = (tmp_path / "x y" / "1.eval").as_uri(), str(tmp_path / "z" / "2.eval")
    viewer = viewer_of([first, second], tmp_path / "out", "http://host:1")
    assert viewer.command == "cd .. && inspect view --log-dir ."
    assert viewer.names == {first: "x y/1.eval", second: "z/2.eval"}


def test_what_a_page_cannot_hold_is_left_out_of_every_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = ["arm", "unit", "probe_id", "epoch"]
    samples = DataFrame(product("ab", ("x@1", "y@1"), "123", (1, 2)), columns=columns)
    assert shown_answers(samples).all()
    monkeypatch.setattr(page, "MAX_ANSWERS", 9)
    shown = samples[shown_answers(samples)]
    probes = {("x@1", "1", 1), ("x@1", "2", 1), ("y@1", "1", 1), ("y@1", "2", 1)}
    for arm in "ab":
        rows = shown.loc[shown["arm"] == arm, columns[1:]].itertuples(index=False, name=None)
        assert set(rows) == probes
