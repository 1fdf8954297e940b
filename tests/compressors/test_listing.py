"""``compression-eval compressors list``."""

import json
from pathlib import Path

from click.testing import CliRunner

from compression_eval.cli import main
from compression_eval.compressors.names import CALLS_MODEL
from compression_eval.compressors.registry import COMPRESSORS


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["compressors", "list", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_every_strategy_has_a_line_that_says_what_it_is() -> None:
    lines = listed().splitlines()
    assert set(COMPRESSORS) <= set(CALLS_MODEL)
    rows = {line.split()[0]: line for line in lines[1:] if line and line[0] != " "}
    assert set(COMPRESSORS) <= set(rows)
    assert max(map(len, lines)) <= 80
    assert rows["tail"].split()[1:] == ["no", "target_tokens"]
    assert rows["anchored"].split()[1:] == ["yes", "target_tokens"]
    assert rows["trim"].split()[1:] == ["no", "preserve"]
    assert rows["full"].split()[1:] == ["no", "-"]
    about = lines[lines.index(rows["codex"]) + 1]
    assert about.strip() == COMPRESSORS["codex"].summary
    assert "state can be read: no" in listed("openai-compact")
    edit = listed("edit")
    for default in ("keep_tool_uses=3", "keep_tool_inputs=true", "exclude_tools=null"):
        assert f"  {default}\n" in edit


def test_every_parameter_of_every_strategy_is_explained() -> None:
    for entry in json.loads(listed("--json")):
        assert set(entry) >= {"name", "calls_model", "readable", "takes_target"} | {
            "sized_by",
            "parameters",
        }
        missing = [name for name, about in entry["parameters"].items() if not about["description"]]
        assert not missing, (entry["name"], missing)


def test_ones_own_is_explained_by_its_signature(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text("def f(messages, *, keep: int, label='x'): return messages\n", encoding="utf-8")
    text = listed(f"{path}@f")
    assert "keep (required)" in text
    assert "label=x" in text
    assert "index_tokens=" not in text
    assert "index_tokens=" in listed(f"{path}@f+artifacts")


def test_an_unknown_name_is_one_clean_line() -> None:
    for name, says in (
        ("zzz", f"unknown strategy 'zzz' (expected one of {', '.join(COMPRESSORS)}, or "),
        ("tial", "'tial'; did you mean 'tail'?\n"),
        ("tial+artifacts", "'tial+artifacts'; did you mean 'tail+artifacts'?\n"),
        ("no_such:x", "no module 'no_such'"),
    ):
        result = CliRunner().invoke(main, ["compressors", "list", name])
        assert result.exit_code == 1
        assert says in result.output
        assert "Traceback" not in result.output
