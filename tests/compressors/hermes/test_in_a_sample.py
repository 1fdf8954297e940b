"""Inside an Inspect sample: whose transcript the calls are in, which role, whose limits."""

from pathlib import Path
from typing import Any

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, resolve_sample_attachments
from inspect_ai.model import get_model
from inspect_ai.solver import Generate, Solver, TaskState, solver

from compression_eval.compressors.running import compress
from tests.compressors.arms import plan_of
from tests.compressors.conftest import conversation_fixture, model_replying


def compressing(python: Path) -> Solver:
    @solver(name="compressing")
    def compressing() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            fixture = conversation_fixture(turns=int(state.sample_id))
            plan = plan_of(fixture, "hermes", {"python": str(python)})
            compressed = await compress(plan, 0, get_model(role="compressor"))
            state.metadata["status"] = compressed.status
            state.metadata["calls"] = compressed.cycles[0].model_calls
            return state

        return solve

    return compressing()


def run(python: Path, folder: Path, **options: Any) -> EvalLog:
    task = Task(
        dataset=[Sample(id=turns, input="x") for turns in (12, 13, 14)],
        solver=compressing(python),
    )
    (log,) = eval(
        task,
        model="mockllm/model",
        model_roles={"compressor": model_replying(lambda _: "the summary")[0]},
        log_dir=str(folder),
        display="log",
        log_realtime=False,
        **options,
    )
    return log


def test_each_samples_calls_are_in_its_own_transcript(fake_python: Path, tmp_path: Path) -> None:
    log = run(fake_python, tmp_path / "logs")
    assert log.status == "success"
    for sample in map(resolve_sample_attachments, log.samples or []):
        assert (sample.metadata["status"], sample.metadata["calls"]) == ("ok", 1)
        (call,) = [event for event in sample.events if isinstance(event, ModelEvent)]
        assert call.role == "compressor"
        turns = int(sample.id)
        assert f"Step {turns - 2}." in call.input[0].text
        assert f"Step {turns - 1}." not in call.input[0].text
        assert sample.role_usage["compressor"].total_tokens == 15
    assert len(log.samples or []) == 3


def test_a_token_limit_of_the_sample_is_the_samples_not_the_states(
    fake_python: Path, tmp_path: Path
) -> None:
    log = run(fake_python, tmp_path / "logs", token_limit=12)
    assert [sample.limit and sample.limit.type for sample in log.samples or []] == ["token"] * 3
