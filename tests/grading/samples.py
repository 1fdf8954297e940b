"""Samples whose store is filled as the solver of the real task fills it, without a compression."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval  # noqa: A004
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    GenerateConfig,
    Model,
    ModelOutput,
    ModelUsage,
    StopReason,
    get_model,
)
from inspect_ai.scorer import Score, Scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import ToolChoice, ToolInfo

from compression_eval.compressors.state import CycleRecord
from compression_eval.facts.life import wrong_values
from compression_eval.facts.records import FactRecord
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.models import Language
from compression_eval.grading.metrics import MEAN
from compression_eval.grading.rubric import CriteriaMode, load_rubric, structure
from compression_eval.record import (
    AnswerRecord,
    SampleRecord,
    StateRecord,
    write_record,
)

ANSWERER = "mockllm/answerer"


def context() -> list[ChatMessage]:
    """Return the messages of the state that `state_record` describes."""
    return [
        ChatMessageSystem(content="You help."),
        ChatMessageUser(content="Summary: the service listens on 8080."),
    ]


def probe(**changes: Any) -> Probe:
    """Return a recall probe about a port that was changed from 3000 to 8080."""
    fields: dict[str, Any] = {
        "id": "port",
        "type": "recall",
        "question": "Which port does the service use?",
        "expected_facts": [{"fact": "8080", "superseded": ["3000"]}, "gateway.toml"],
    }
    return Probe.model_validate(fields | changes)


def state_record(**changes: Any) -> StateRecord:
    """Return a state that contains one of the two expected facts of `probe`."""
    fields: dict[str, Any] = {
        "state_id": "s-1",
        "status": "ok",
        "message_count": 2,
        "regions": ["head", "summary"],
        "cycles": [
            CycleRecord(
                cut=40,
                applied="SomeStrategy",
                tokens_before=1000,
                tokens_after=100,
                messages_before=40,
                messages_after=2,
                model_calls=1,
                seconds=2.5,
            )
        ],
        "facts": [
            FactRecord(
                probe_id="port",
                fact="8080",
                evidence=[3],
                in_history=True,
                fed=True,
                in_state=True,
                regions=["summary"],
                cycles=1,
            ),
            FactRecord(
                probe_id="port",
                fact="gateway.toml",
                evidence=[4],
                in_history=True,
                fed=True,
                in_state=False,
                cycles=1,
            ),
        ],
        "token_counter": "o200k_base",
        "original_tokens": 1000,
        "state_tokens": 100,
    }
    return StateRecord(**(fields | changes))


def answer_record(text: str = "It uses 8080, see gateway.toml.", **changes: Any) -> AnswerRecord:
    """Return an answer by `ANSWERER`; by default with both expected facts."""
    return AnswerRecord(**({"text": text, "model": ANSWERER, "stop_reason": "stop"} | changes))


def record(
    *,
    asked: Probe | None = None,
    answer: str | AnswerRecord = "It uses 8080, see gateway.toml.",
    state: StateRecord | None = None,
    **changes: Any,
) -> dict[str, Any]:
    """Return the fields of a `SampleRecord`."""
    fields: dict[str, Any] = {
        "fixture": "one",
        "cut": 40,
        "replicate": 0,
        "language": "en",
        "probe": asked or probe(),
        "state": state or state_record(),
        "answer": answer_record(answer) if isinstance(answer, str) else answer,
    }
    return fields | changes


Records = dict[tuple[str, int], dict[str, Any]]
"""Fields of a record by sample id and epoch (from 1)."""


@solver
def fill_record(records: Records) -> Solver:
    """Put the record of this sample and epoch into its store."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        fields = records[str(state.sample_id), state.epoch]
        if fields.get("state") is not None and fields.get("probe") is not None:
            write_record(state.store, SampleRecord(**fields))
        state.messages = [*context(), ChatMessageUser(content="the question")]
        return state

    return solve


def run(
    scorer: Scorer | list[Scorer],
    records: Records | dict[str, Any],
    log_dir: Path,
    *graders: "MockGrader | Model | str",
    model: Model | str | None = None,
    epochs: Any = None,
) -> EvalLog:
    """Evaluate a tiny task and return its log.

    Args:
        scorer: What scores it.
        records: By sample id and epoch, or that of the only sample ``a``.
        log_dir: Where the log is written.
        *graders: What is bound to the role; without any nothing is.
        model: Who is said to have answered.
        epochs: As of the task.
    """
    by_sample: Records = {("a", 1): records} if "fixture" in records else records  # type: ignore[dict-item, assignment]
    names = list(dict.fromkeys(name for name, _ in by_sample))
    fixtures = {name: by_sample[name, 1].get("fixture", "one") for name in names}
    dataset = [
        Sample(id=id_, input="probe", metadata={"fixture": own, "cluster": own})
        for id_, own in fixtures.items()
    ]
    bound = [each.model if isinstance(each, MockGrader) else each for each in graders]
    (log,) = eval(
        Task(dataset=dataset, solver=fill_record(by_sample), scorer=scorer, epochs=epochs),
        model=model or get_model(ANSWERER, memoize=False),
        model_roles={"grader": bound if len(bound) > 1 else bound[0]} if bound else None,
        log_dir=str(log_dir),
        log_realtime=False,
        display="log",
    )
    assert log.status == "success", log.error
    return log


def samples(log: EvalLog) -> list[EvalSample]:
    """Return a log's samples."""
    assert log.samples
    return log.samples


def only_score(log: EvalLog, scorer: str = "six_dimensions") -> Score:
    """Return the score of a log's only sample."""
    (sample,) = samples(log)
    assert sample.scores is not None
    return sample.scores[scorer]


def values(score: Score) -> dict[str, float]:
    """Return the values of a dict score."""
    return {key: float(value or 0) for key, value in score.as_dict().items()}


def metric(log: EvalLog, key: str, name: str = MEAN) -> float:
    """Return a metric's value from a log's results."""
    assert log.results
    (found,) = [item for item in log.results.scores if item.name == key]
    return float(found.metrics[name].value)


def ids(asked: Probe | None = None, mode: CriteriaMode = "by_type") -> list[str]:
    """Return the criteria that a probe is graded on."""
    return [item.id for item in load_rubric("en").criteria_for(asked or probe(), mode)]


def weighted(scores: Mapping[str, float], dimension: str = "") -> float:
    """Return the mean of scores by criterion id, of one dimension if named, by their weights."""
    weights = {
        each.id: each.weight
        for each in structure().criteria
        if each.id in scores and dimension in ("", each.dimension)
    }
    return sum(weights[id_] * scores[id_] for id_ in weights) / sum(weights.values())


def reply(
    scores: dict[str, Any] | float | None = 4,
    asked: Probe | None = None,
    facts: Sequence[str] | None = None,
    wrong: str = "missing",
) -> str:
    """Return a well-formed grader's reply, by default with one score for every criterion.

    Args:
        scores: The same for all, or by criterion id.
        asked: What it is about.
        facts: The word on each expected fact; by default all are stated.
        wrong: The word on each superseded and forbidden value.
    """
    known = (asked or probe()).expected_facts
    values = wrong_values(asked or probe())
    given = scores if isinstance(scores, dict) else dict.fromkeys(ids(asked), scores)
    return json.dumps(
        {
            "criterionResults": [
                {"criterionId": id_, "score": score, "reasoning": f"because {id_}"}
                for id_, score in given.items()
            ],
            "facts": [
                {"factId": f"f{n}", "verdict": word}
                for n, word in enumerate(facts or ["stated"] * len(known), start=1)
            ]
            + [{"factId": f"w{n}", "verdict": wrong} for n in range(1, len(values) + 1)],
        }
    )


def output(text: str, stop_reason: StopReason = "stop") -> ModelOutput:
    """Return a model output with its usage, so that nothing has to be counted."""
    made = ModelOutput.from_content("mockllm/grader", text, stop_reason)
    made.usage = ModelUsage(input_tokens=10, output_tokens=10, total_tokens=20)
    return made


class MockGrader:
    """A grader that says what it is told to, and remembers what it was asked.

    Attributes:
        model: To be bound to the role.
        requests: The messages of each call.
        configs: The settings of each call.
    """

    def __init__(
        self,
        replies: Iterable[str | ModelOutput | Exception] | Callable[[str], str] = (),
        name: str = "mockllm/grader",
    ) -> None:
        self.requests: list[list[ChatMessage]] = []
        self.configs: list[GenerateConfig] = []
        self._reply = replies if callable(replies) else None
        self._replies = [] if callable(replies) else list(replies)
        self.model = get_model(name, custom_outputs=self._answer, memoize=False)

    def _answer(
        self,
        messages: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        self.requests.append(list(messages))
        self.configs.append(config)
        if self._reply is not None:
            return output(self._reply(messages[-1].text))
        # The last of the replies stands for all that follow.
        said = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        if isinstance(said, Exception):
            raise said
        return output(said) if isinstance(said, str) else said


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the texts of all parts of all messages."""
    found: list[str] = []
    for message in messages:
        parts = [message.content] if isinstance(message.content, str) else message.content
        found.extend(part if isinstance(part, str) else getattr(part, "text", "") for part in parts)
    return found


LANGUAGES: tuple[Language, ...] = ("en", "zh", "ja")
