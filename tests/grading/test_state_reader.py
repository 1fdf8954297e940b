import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import score as score_again
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.model import ChatMessage, ChatMessageAssistant, ChatMessageUser
from inspect_ai.scorer import Score
from inspect_ai.tool import ToolCall

from compression_eval.facts.records import FactRecord
from compression_eval.grading.scorers import fact_retention
from compression_eval.grading.state_reader import FACTS_PER_CALL, StateQuestion, read_state
from compression_eval.record import AskedProbe
from tests.grading.samples import (
    LANGUAGES,
    MockGrader,
    answer_record,
    only_score,
    output,
    probe,
    record,
    run,
    samples,
    state_record,
    texts,
    values,
)

PORT_STATED = ("stated", "the service listens on 8080")
"""What `context` of the samples says; it names no file."""


def asked_of(request: list[ChatMessage]) -> list[dict[str, Any]]:
    """Return the questions that a request asks for facts of."""
    (line,) = [
        line
        for line in texts(request)[2].splitlines()
        if line.startswith("{") and "facts_to_find" in line
    ]
    found: list[dict[str, Any]] = json.loads(line)["facts_to_find"]
    return found


def findings(said: dict[str, tuple[str, ...]]) -> str:
    """Return a reply with a word and quotes for each fact id."""
    return json.dumps(
        {
            "factFindings": [
                {"factId": id_, "word": word, "quotes": quotes}
                for id_, (word, *quotes) in said.items()
            ]
        }
    )


BOTH = findings({"f1": PORT_STATED, "f2": ("absent",)})


def read(tmp_path: Path, grader: MockGrader, given: dict[str, Any] | None = None) -> Score:
    log = run(fact_retention(), given or record(), tmp_path, grader)
    return only_score(log, "fact_retention")


def rows(score: Score) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (score.metadata or {})["facts"]
    return found


def test_the_words_stand_beside_the_look_up(tmp_path: Path) -> None:
    grader = MockGrader([BOTH])
    score = read(tmp_path, grader)
    first, second = rows(score)
    assert (first["in_state"], first["in_state_read"]) == (True, "stated")
    assert first["state_quotes"] == ["the service listens on 8080"]
    assert (second["in_state"], second["in_state_read"]) == (False, "absent")
    found = values(score)
    assert (found["fact_survival"], found["fact_agreement"]) == (0.5, 1)
    assert (score.metadata or {})["survival_by"] == "reader"
    assert (score.metadata or {})["state_reader"] == "mockllm/grader"
    explanation = score.explanation or ""
    assert 'read: stated ("the service listens on 8080")' in explanation
    assert "State read by mockllm/grader (1 call)." in explanation
    assert "Look-up and reader agree on 2 of 2 facts." in explanation


def test_the_request_begins_as_gradings_do_and_holds_the_state_as_data(tmp_path: Path) -> None:
    grader = MockGrader([BOTH])
    read(tmp_path, grader)
    (request,) = grader.requests
    rubric, state, facts = texts(request)
    assert "accuracy_factual" in rubric
    assert json.loads(state)["compacted_context"].endswith("the service listens on 8080.")
    assert "factFindings" in facts.splitlines()[-2] + facts
    assert asked_of(request) == [
        {
            "question": "Which port does the service use?",
            "expected_facts": [
                {"factId": "f1", "fact": "8080", "also_accepted": []},
                {"factId": "f2", "fact": "gateway.toml", "also_accepted": []},
            ],
        }
    ]
    schema = grader.configs[0].response_schema
    assert schema
    assert schema.name == "state_facts"


@pytest.mark.parametrize(
    ("said", "stage", "survival", "agreement"),
    [
        # The look-up did not find it, the reader did, and the answer has it.
        (("stated", "Summary: the service listens"), "used", 1, 0.5),
        (("derivable", "the service listens", "8080"), "used", 1, 0.5),
        (("absent",), "answered_not_found", 0.5, 1),
    ],
)
def test_the_reader_decides_the_stage(
    tmp_path: Path, said: tuple[str, ...], stage: str, survival: float, agreement: float
) -> None:
    score = read(tmp_path, MockGrader([findings({"f1": PORT_STATED, "f2": said})]))
    assert rows(score)[1]["stage"] == stage
    assert values(score)["fact_agreement"] == agreement
    assert values(score)["fact_survival"] == survival


def test_a_passage_only_in_kept_messages_makes_the_fact_verbatim(tmp_path: Path) -> None:
    grader = MockGrader([findings({"f1": PORT_STATED, "f2": ("derivable", "You help.")})])
    row = rows(read(tmp_path, grader))[1]
    assert (row["stage"], row["regions"]) == ("verbatim", ["head"])


def test_a_quote_that_does_not_stand_there_is_asked_for_once_more(tmp_path: Path) -> None:
    wrong = findings({"f1": PORT_STATED, "f2": ("stated", "see gateway.toml")})
    grader = MockGrader([wrong, findings({"f2": ("absent",)})])
    score = read(tmp_path, grader)
    assert [row["in_state_read"] for row in rows(score)] == ["stated", "absent"]
    first, second = grader.requests
    assert second[: len(first)] == first
    assert '{"f2": ["see gateway.toml"]}' in second[-1].text
    assert "one entry for each of: f2." in second[-1].text


def test_one_invented_quote_beside_a_true_one_leaves_the_fact_unknown(tmp_path: Path) -> None:
    mixed = findings({"f1": (*PORT_STATED, "and on 9090 at night"), "f2": ("absent",)})
    row = rows(read(tmp_path, MockGrader([mixed])))[0]
    assert row["in_state_read"] is None
    assert row["state_read_problem"] == "a quote that is not in the state"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ([], "no entry"),
        ([("stated",)], "no quote"),
        ([("stated", "8080"), ("absent",)], "two entries"),
    ],
)
def test_unusable_entries(tmp_path: Path, entry: list[tuple[str, ...]], problem: str) -> None:
    said = [("f2", "absent"), *(("f1", *item) for item in entry)]
    reply = json.dumps(
        {
            "factFindings": [
                {"factId": id_, "word": word, "quotes": quotes} for id_, word, *quotes in said
            ]
        }
    )
    first, second = rows(read(tmp_path, MockGrader([reply])))
    assert (first["in_state_read"], first["state_read_problem"]) == (None, problem)
    assert second["in_state_read"] == "absent"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("no idea", "unusable reply: not_json"),
        (RuntimeError("over quota"), "RuntimeError: over quota"),
        (output("", "content_filter"), "the model declined"),
    ],
)
def test_a_failed_reader_leaves_survival_unknown(tmp_path: Path, said: Any, reason: str) -> None:
    grader = MockGrader([said])
    score = read(tmp_path, grader)
    found = values(score)
    assert found["fact_recall"] == 1
    assert math.isnan(found["fact_survival"])
    assert math.isnan(found["fact_agreement"])
    assert (score.metadata or {})["state_reader_failure"] == reason
    assert [row["stage"] for row in rows(score)] == ["used", "answered_not_found"]
    assert f"failed: {reason}" in (score.explanation or "")
    assert len(grader.requests) == 3


def asking_twice() -> dict[tuple[str, int], dict[str, Any]]:
    """Return two probes of one state, in two epochs each."""
    other = probe(id="file", question="Which file sets it?", expected_facts=["gateway.toml"])
    facts = [
        *state_record().facts,
        FactRecord(probe_id="file", fact="gateway.toml", in_history=True, in_state=False),
    ]
    state = state_record(asked=[AskedProbe.of(probe()), AskedProbe.of(other)], facts=facts)
    return {
        (name, epoch): record(asked=asked, state=state)
        for epoch in (1, 2)
        for name, asked in (("a", probe()), ("b", other))
    }


ALL = findings({"f1": PORT_STATED, "f2": ("absent",), "f3": ("absent",)})


def readings(log: EvalLog) -> list[tuple[list[str | None], int]]:
    """Return of each sample the reader's words, and how many calls its transcript contains."""
    return [
        (
            [row["in_state_read"] for row in rows(sample.scores["fact_retention"])],
            (sample.scores["fact_retention"].metadata or {})["state_reader_calls"],
        )
        for sample in samples(log)
        if sample.scores
    ]


def test_one_call_serves_all_samples_and_epochs_of_a_state(tmp_path: Path) -> None:
    grader = MockGrader([ALL])
    log = run(fact_retention(), asking_twice(), tmp_path, grader, epochs=2)
    assert len(grader.requests) == 1
    assert [len(words) for words, _ in readings(log)] in ([2, 1, 2, 1], [2, 2, 1, 1])
    assert sorted(calls for _, calls in readings(log)) == [0, 0, 0, 1]
    again = MockGrader([ALL], name="mockllm/again")
    scored = score_again(
        read_eval_log(log.location),
        fact_retention(),
        model_roles={"grader": again.model},
        action="overwrite",
        display="log",
    )
    assert len(again.requests) == 1
    assert sorted(calls for _, calls in readings(scored)) == [0, 0, 0, 1]


@pytest.mark.parametrize(
    ("given", "scorer"),
    [
        (record(state=state_record(readable=False)), fact_retention),
        (record(state=state_record(status="empty")), fact_retention),
        (record(state=state_record(message_count=0, regions=[])), fact_retention),
        (record(), lambda: fact_retention("match")),
    ],
)
def test_states_that_are_not_read(
    tmp_path: Path, given: dict[str, Any], scorer: Callable[[], Any]
) -> None:
    grader = MockGrader([BOTH])
    log = run(scorer(), given, tmp_path, grader)
    assert not grader.requests
    assert "state_reader" not in (only_score(log, "fact_retention").metadata or {})


def test_the_embedded_model_never_reads(tmp_path: Path) -> None:
    log = run(fact_retention(), record(), tmp_path, "embedded/lexical")
    assert "state_reader" not in (only_score(log, "fact_retention").metadata or {})
    log = run(
        fact_retention("reader"), record(answer=answer_record()), tmp_path, "embedded/lexical"
    )
    told = only_score(log, "fact_retention").metadata or {}
    assert told["state_reader_failure"] == "the embedded model is no language model"


PASSAGES: list[ChatMessage] = [
    ChatMessageUser(content="The limit is\n  250 ms, set in C:\\temp\\new.toml, not\u2028before."),
    ChatMessageAssistant(
        content="",
        tool_calls=[
            ToolCall(id="c", function="write", arguments={"text": 'say "no"\nif 名前 is empty'})
        ],
    ),
]


@pytest.mark.parametrize(
    ("quote", "stands"),
    [
        ("The limit is 250 ms", True),
        ("C:\\\\temp\\\\new.toml", True),
        ("not before", True),
        ('say \\"no\\"\\nif', True),
        ("\\u540d\\u524d is empty", True),
        ("the limit is 250 ms", False),
        ("before. say", False),
        ("The limit is 250 m", False),
        ("[user] The limit is 250 ms", False),
    ],
)
@pytest.mark.anyio
async def test_where_a_quote_stands(quote: str, stands: bool) -> None:
    grader = MockGrader([findings({"f1": ("stated", quote)})])
    asked = AskedProbe(probe_id="p", question="?", facts=[["250 ms", "before", "say"]])
    about = StateQuestion(PASSAGES, ["head", "tail"], [asked], "en")
    reading = await read_state(grader.model, about)
    (finding,) = reading.findings["p"]
    assert (finding.word == "stated") is stands


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.anyio
async def test_many_facts_are_split_over_calls(language: Any) -> None:
    def absent(last: str) -> str:
        data = json.loads(last.splitlines()[-1])["facts_to_find"]
        ids = [fact["factId"] for question in data for fact in question["expected_facts"]]
        return findings(dict.fromkeys(ids, ("absent",)))

    grader = MockGrader(absent)
    asked = [
        AskedProbe(probe_id=f"p{n}", question="?", facts=[[f"fact {n}.{m}"] for m in range(9)])
        for n in range(10)
    ]
    about = StateQuestion(PASSAGES, ["head", "tail"], asked, language)
    reading = await read_state(grader.model, about)
    sizes = [
        sum(len(question["expected_facts"]) for question in asked_of(request))
        for request in grader.requests
    ]
    assert sizes == [FACTS_PER_CALL, 90 - FACTS_PER_CALL]
    assert reading.calls == 2
    assert all(len(found) == 9 for found in reading.findings.values())
