"""Logs of another task whose agent compacted itself: what compare and report say of them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai import Task, task
from inspect_ai import eval as run_eval
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.log import read_eval_log, write_eval_log
from inspect_ai.model import (
    ChatMessage,
    CompactionEdit,
    CompactionStrategy,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    get_model,
)
from inspect_ai.scorer import includes
from inspect_ai.tool import Tool, ToolChoice, ToolInfo, tool

from compression_eval import MaskingCompaction
from compression_eval.cli import main
from tests.analysis.embedded import embedded
from tests.e2e import small

PAGES = 5
CODE = "4711"
HOSTILE = "</script><script>alert(1)</script>"


@tool
def read_page() -> Tool:
    async def execute(page: int) -> str:
        """Read a page of the notes.

        Args:
            page: Its number.
        """
        code = f"The code is {CODE}. " if page == 1 else ""
        return f"Page {page}. {code}" + "Nothing of note. " * 100

    return execute


def _failing(messages: Sequence[ChatMessage], *rest: Any) -> ModelOutput:
    """Break down on the hasty samples."""
    if "hasty" in messages[1].text:
        raise RuntimeError("the agent broke down")
    return _reply(messages, *rest)


def _reply(
    messages: Sequence[ChatMessage], tools: list[ToolInfo], choice: ToolChoice, config: Any
) -> ModelOutput:
    """Read every page; then give the code, for which half of the samples look again."""
    del tools, choice, config
    name, whole = "mockllm/model", " ".join(message.text for message in messages)
    calls = sum(len(getattr(message, "tool_calls", None) or ()) for message in messages)
    if calls < PAGES:
        output = ModelOutput.for_tool_call(name, "read_page", {"page": calls + 1})
    elif f"The code is {CODE}" not in whole and "careful" in whole and calls < PAGES + 2:
        output = ModelOutput.for_tool_call(name, "read_page", {"page": 1})
    else:
        known = CODE if f"The code is {CODE}" in whole else "unknown"
        output = ModelOutput.for_tool_call(name, "submit", {"answer": known})
    size = len(whole) // 4
    output.usage = ModelUsage(input_tokens=size, output_tokens=5, total_tokens=size + 5)
    return output


@task
def notes(compaction: CompactionStrategy | None = None, samples: int = 8) -> Task:
    kinds = ("careful", "hasty")
    return Task(
        dataset=[
            Sample(id=f"{HOSTILE}{at}", input=f"Find the code; be {kinds[at % 2]}.", target=CODE)
            for at in range(samples)
        ],
        solver=react(tools=[read_page()], compaction=compaction),
        scorer=includes(),
    )


def _run(
    folder: Path, compaction: CompactionStrategy | None, reply: Any = _reply, **given: Any
) -> Path:
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    given = {"display": "log", "log_realtime": False, **given}
    (log,) = run_eval(notes(compaction), model=model, log_dir=str(folder), **given)
    assert log.status == "success"
    return Path(log.location.removeprefix("file://"))


async def _count(_: ModelAPI, text: str) -> int:
    return len(text) // 4


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("agents")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelAPI, "count_text_tokens", _count)  # Inspect's would need a network
        edit = CompactionEdit(threshold=1_200, keep_tool_uses=1, memory=False)
        return {
            "whole": _run(folder / "whole", None),
            "again": _run(folder.with_name("again"), None),
            "failing": _run(folder.with_name("failing"), None, _failing, fail_on_error=False),
            "edit": _run(folder / "edit", edit),
            "masking": _run(folder / "masking", MaskingCompaction(threshold=1_200, keep=1)),
        }


def _command(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_what_compaction_cost_is_told(logs: dict[str, Path]) -> None:
    result = _command("compare", logs["whole"], "--to", logs["edit"], "--format", "json")
    told = json.loads(result.stdout)
    measures = told["measures"]
    assert result.exit_code == 1
    assert told["outcome"] == "regression"
    assert "CompactionEdit" in told["new"]
    # Every sample finds the code in its whole context; half of them look it up again without.
    score = measures["includes"]
    assert (score["base"], score["new"], score["samples"]) == (1.0, 0.5, 8)
    assert measures["repeated"] == measures["repeated"] | {"base": 0.0, "new": 0.5}
    # Nothing was summarised, so nothing is told of it; no zero.
    assert "fetched_again" not in measures
    assert measures["removed"]["base"] == 0 < measures["removed"]["new"]
    assert measures["turns"]["change"] == 0.5
    per_solved = told["tokens_per_solved"]
    spent = {side: measures["tokens"][side] for side in ("base", "new")}
    assert per_solved["base"] == pytest.approx(spent["base"])
    assert per_solved["new"] == pytest.approx(spent["new"] / 0.5)


def test_a_wide_margin_and_a_second_run_are_no_regression(logs: dict[str, Path]) -> None:
    wide = _command("compare", logs["whole"], "--to", logs["edit"], "--margin", "0.99")
    assert wide.exit_code == 0, wide.output
    assert "worse, by less than the margin" in wide.stdout
    again = _command("compare", logs["whole"], "--to", logs["again"], "--format", "json")
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["measures"]["tokens"]["change"] == 0
    same = _command("compare", logs["again"], "--to", logs["again"])
    assert (same.exit_code, "the same run is on both sides" in same.output) == (2, True)


def test_a_scorer_may_be_called_like_a_measure(logs: dict[str, Path], tmp_path: Path) -> None:
    sides = []
    for side in ("again", "edit"):
        log = read_eval_log(str(logs[side]))
        log.eval.scorers[0].name = "tokens"  # type: ignore[index]
        for sample in log.samples or []:
            assert sample.scores
            sample.scores["tokens"] = sample.scores.pop("includes")
            sample.scores["state"] = sample.scores["tokens"]
        sides.append(tmp_path / f"{side}.eval")
        write_eval_log(log, str(sides[-1]))
    told = json.loads(_command("compare", sides[0], "--to", sides[1], "--format", "json").stdout)
    score, tokens = (told["measures"][key] for key in ("score tokens", "tokens"))
    assert (told["score"], score["base"], score["new"]) == ("tokens", 1.0, 0.5)
    assert told["measures"]["state"]["new"] == 0.5
    assert tokens["base"] > 1_000


def test_an_arm_never_wins_by_failing(logs: dict[str, Path]) -> None:
    # Half of the samples failed: too few to show that it fails more, and never "not worse".
    result = _command("compare", logs["whole"], "--to", logs["failing"])
    assert result.exit_code == 3, result.output
    assert "4 of 8 samples have no score: RuntimeError('the agent broke down')" in result.stdout


def test_arms_of_one_folder_are_told_apart_by_what_differs(
    logs: dict[str, Path], tmp_path: Path
) -> None:
    whole = logs["whole"].parent.parent
    refused = _command("compare", whole, "--to", logs["edit"])
    assert refused.exit_code == 2
    arms = "'CompactionEdit', 'MaskingCompaction', 'no compaction'"
    assert f"the logs are of 3 arms, {arms}; name one of them with --base-arm" in refused.output
    for part, code in (("no comp", 1), ("Compaction", 2)):
        assert (
            _command("compare", whole, "--base-arm", part, "--to", logs["edit"]).exit_code == code
        )
    out = tmp_path / "report"
    made = _command("report", whole, "--out", out)
    assert made.exit_code == 0, made.output
    figures = json.loads((out / "figures.json").read_text())
    names = [arm["name"] for arm in figures["arms"]]
    assert len(set(names)) == 3
    assert any(name.startswith("MaskingCompaction") for name in names)
    page = (out / "index.html").read_text()
    assert "<script" not in page
    assert "nothing was compacted" in page
    assert (out / "charts" / "tokens.png").stat().st_size > 5_000
    assert "tokens per solved sample" in (out / "report.md").read_text()


def test_what_is_only_for_our_logs_is_refused(logs: dict[str, Path], tmp_path: Path) -> None:
    both = (logs["whole"], "--to", logs["edit"])
    refused = _command("compare", *both, "--gate")
    assert (refused.exit_code, "only for logs of compression_eval" in refused.output) == (2, True)
    ours = embedded(tmp_path / "logs", small.write(tmp_path / "data"))
    mixed = _command("compare", logs["whole"], "--to", ours.location)
    assert mixed.exit_code == 2
    assert "not of compression_eval" in mixed.output


def test_what_a_grader_took_is_not_the_agents(logs: dict[str, Path], tmp_path: Path) -> None:
    log = read_eval_log(str(logs["again"]))
    spent = ModelUsage(input_tokens=900_000, output_tokens=0, total_tokens=900_000)
    for sample in log.samples or []:
        sample.model_usage["mockllm/judge"] = spent
        sample.role_usage["grader"] = spent
    write_eval_log(log, str(tmp_path / "graded.eval"))
    result = _command(
        "compare", logs["whole"], "--to", tmp_path / "graded.eval", "--format", "json"
    )
    tokens = json.loads(result.stdout)["measures"]["tokens"]
    assert tokens["base"] == tokens["new"] < 900_000
