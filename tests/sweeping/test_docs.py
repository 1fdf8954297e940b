"""What docs/sweeps.md shows works as it is there."""

import re
from pathlib import Path

import pytest
import yaml

from compression_eval.compressors.budget import KNOBS
from tests.e2e.command import ROOT
from tests.sweeping.commanding import run

DOCS = (ROOT / "docs" / "sweeps.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_every_yaml_is_taken(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "shorter.md").write_text("Summarise in few words.", encoding="utf-8")
    content = yaml.safe_load(BLOCKS[number])
    if "arms" in content:
        (tmp_path / "prompts.yaml").write_text(BLOCKS[number], encoding="utf-8")
        assert "compression-eval sweep prompts.yaml" in DOCS
        ended = run("sweep", "prompts.yaml", "--dry-run")
        assert ended.code == 0, ended.errors
        for label in (
            "anchored (summary_tokens=5500",
            "prompt=shorter.md)",
            "google/gemini-x",
        ):
            assert label in ended.output
    else:
        (tmp_path / "prices.yaml").write_text(BLOCKS[number], encoding="utf-8")
        model = next(iter(content))
        ended = run(
            *("estimate", "--arms", "tail", "--no-controls", "--models", model),
            *("--fixtures", "cron-config", "--prices", "prices.yaml"),
        )
        assert ended.code == 0, ended.errors
        assert "unknown" not in ended.output
        assert "$" in ended.output


def test_the_strategies_that_are_fitted_are_listed() -> None:
    for name, knob in KNOBS.items():
        assert f"`{name}`" in DOCS
        assert f"`{knob.argument}`" in DOCS
