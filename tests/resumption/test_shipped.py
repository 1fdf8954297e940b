"""The continuation tasks of this project are proven, and were when they last changed."""

import shlex
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from inspect_ai.model import ChatMessage, ModelOutput, get_model

from compression_eval.fixtures import continuations, recording
from compression_eval.fixtures.locations import data_folder, recordings_folder
from tests.resumption.working import calls, resumed, says

FOLDER = data_folder() / "continuations"
NAMES = sorted(path.stem for path in FOLDER.glob("*.yaml"))

SHORT = ("cron-config", "zh-log-rotation")
"""Those that the slow tests always prove; of the others see `proof`."""

PROVEN = Path(__file__).with_name("proven_tasks")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SHORT else pytest.mark.recordings)
        for name in NAMES
    ],
)
def test_an_agent_that_works_by_the_scripts_keeps_and_breaks_what_they_say(
    name: str, tmp_path: Path
) -> None:
    before = proof(name)
    tasks = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))["tasks"]
    for task in tasks:
        # The first epoch does nothing, the second follows the solution, and each later one breaks a
        # constraint after it; as where they are proven, each script runs by itself in the folder.
        constraints = task.get("constraints", [])
        violations = [constraint["violation"] for constraint in constraints]
        scripts = [(), (task["solution"],), *((task["solution"], each) for each in violations)]
        waiting = iter(scripts)

        def reply(
            messages: list[ChatMessage], *_: Any, waiting: Iterator[Any] = waiting
        ) -> ModelOutput:
            script = () if messages[-1].role == "tool" else next(waiting)
            steps = [shlex.join(["bash", "-c", each]) for each in script]
            clock = "export RECORDING_NOW=2026-03-02T09:00Z"
            return calls("bash", command="\n".join([clock, *steps])) if steps else says("Done.")

        log = resumed(
            name,
            get_model("mockllm/model", custom_outputs=reply, memoize=False),
            tmp_path,
            more={
                "epochs": len(scripts),
                "max_samples": 1,
                "sample_id": f"{name}/{task['id']}",
            }.items(),
        )
        assert log.status == "success", log.error
        probes = [constraint["probe"] for constraint in constraints]
        expected = [(0, None), (1, []), *((1, [probe]) for probe in probes)]
        samples = sorted(log.samples or [], key=lambda sample: sample.epoch)
        for sample, (finished, broken) in zip(samples, expected, strict=True):
            assert sample.scores
            score = sample.scores["finishing"]
            assert isinstance(score.value, dict), (sample.id, score.reason)
            assert score.metadata
            found = [c["probe"] for c in score.metadata["constraints"] if c["outcome"] != "kept"]
            where = (sample.id, sample.epoch, score.explanation)
            assert score.value["finished"] == finished, where
            if broken is not None:
                assert found == broken, where
                assert score.value["solved"] == (not broken), where
    assert proof(name) == before, "edited meanwhile"
    if name not in SHORT:
        PROVEN.mkdir(exist_ok=True)
        (PROVEN / name).write_text(f"{before}\n", encoding="utf-8")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SHORT])
def test_the_tasks_of_a_long_conversation_were_proven_as_they_are_now(name: str) -> None:
    proven = PROVEN / name
    found = proven.read_text(encoding="utf-8").strip() if proven.exists() else "nothing"
    assert found == proof(name), (
        f"{name}: the tasks, the conversation or what runs them changed since they were last "
        f"proven; run: pytest -m recordings tests/resumption -k {name}, and commit "
        f"{PROVEN.name}/{name}"
    )


def proof(name: str) -> str:
    """Return a digest of what decides whether the tasks of a conversation can be proven."""
    folder = recordings_folder() / name
    files = [
        *(FOLDER / f"{name}{end}" for end in (".yaml", ".probes.json")),
        data_folder() / "fixtures" / f"{name}.json",
        *(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"),
        *(Path(str(module.__file__)) for module in (continuations, recording)),
    ]
    parts = [f"{file.name} {sha256(file.read_bytes()).hexdigest()}" for file in files]
    return sha256("\n".join(sorted(parts)).encode()).hexdigest()
