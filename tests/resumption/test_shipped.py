"""The continuation tasks that come with this project can be done, and are proven."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from inspect_ai.model import ChatMessage, ModelOutput, get_model

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_fixture
from compression_eval.fixtures.locations import data_folder
from tests.resumption.working import calls, resumed, says

QUICK = "zh-log-rotation"
NAMES = [
    pytest.param(name, marks=[] if name == QUICK else pytest.mark.slow)
    for name in sorted(path.stem for path in (data_folder() / "continuations").glob("*.yaml"))
]


@pytest.mark.parametrize("name", NAMES)
def test_the_solutions_as_calls_of_an_agent_solve_every_task(name: str, tmp_path: Path) -> None:
    text = (data_folder() / "continuations" / f"{name}.yaml").read_text(encoding="utf-8")
    tasks = yaml.safe_load(text)["tasks"]
    recorded = load_fixture(data_folder() / "fixtures" / f"{name}.json").messages
    messages_of = {item["id"]: item.get("message") or recorded[item["cut"]].typed for item in tasks}

    def reply(messages: list[ChatMessage], *_: Any) -> ModelOutput:
        if messages[-1].role == "tool":
            return says("Done.")
        said = messages[-1].text
        (task,) = [item for item in tasks if said.startswith(messages_of[item["id"]])]
        return calls("bash", command=f"export RECORDING_NOW=2026-03-02T09:00Z\n{task['solution']}")

    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    log = resumed(name, model, tmp_path)
    assert log.status == "success", log.error
    assert log.samples
    assert len(log.samples) == len(tasks)
    for sample in log.samples:
        assert sample.scores
        score = sample.scores["finishing"]
        assert isinstance(score.value, dict), score.reason
        assert score.value["solved"] == 1, score.explanation
        assert score.value["commands_run_again"] == 0


@pytest.mark.slow
def test_every_task_is_proven() -> None:
    found = CliRunner().invoke(main, ["fixtures", "check", "--continuations"])
    assert found.exit_code == 0, found.output
    assert "0 errors, 0 warnings" in found.output
