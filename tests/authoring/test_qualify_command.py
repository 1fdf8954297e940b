"""``compression-eval probes qualify``, with a model that reads what it is shown."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log

from compression_eval.cli import main
from compression_eval.fixtures.banks import Probe
from compression_eval.fixtures.loading import load_bank
from tests.e2e import scripted, small
from tests.e2e.scripted import ANSWERS, GRADES, Call, Script

pytestmark = pytest.mark.slow

TAIL = 20
"""Tokens only the last message of the small conversation is kept."""

KNOWN = {
    "Which error code stood in the log?": "E4401",
    "Which document is to be written next?": "docs/retry.md",
    "How many retries are allowed?": "retry limit to 7",
}
"""What the model says if it finds it in what it was shown."""


def reads(call: Call) -> str:
    """Answer from the messages before the question, and guess one thing without them."""
    question = call.last.splitlines()[-1]
    if "framework" in question:
        return "python -m unittest, as everywhere."
    shown = "\n".join(str(message.model_dump()) for message in call.messages[:-1])
    fact = KNOWN.get(question, "")
    return f"It was {fact}." if fact and fact in shown else "I do not know."


def bank() -> dict[str, Any]:
    """Return a bank with one probe of each kind: good, tail, guessed, hopeless."""
    return {
        "fixture": "tiny",
        "probes": [
            {
                "id": "code",
                "type": "recall",
                "question": "Which error code stood in the log?",
                "expected_facts": ["E4401"],
            },
            {
                "id": "next",
                "type": "continuation",
                "question": "Which document is to be written next?",
                "expected_facts": [{"fact": "docs/retry.md", "evidence": [10]}],
            },
            {
                "id": "guessed",
                "type": "recall",
                "question": "Which framework runs the tests?",
                "expected_facts": [{"fact": "unittest", "evidence": [7]}],
            },
            {
                "id": "hopeless",
                "type": "recall",
                "question": "How many tests ran?",
                "expected_facts": [{"fact": "14 tests", "evidence": [9]}],
            },
        ],
    }


@pytest.fixture(autouse=True)
def script(tmp_path: Path) -> Iterator[Script]:
    """The answering model, in a folder that no run can leave traces outside of."""
    with _apart(tmp_path) as found:
        yield found


@contextmanager
def _apart(folder: Path) -> Iterator[Script]:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("INSPECT_CACHE_DIR", str(folder / "cache"))
        for name in ("INSPECT_EVAL_MODEL", "INSPECT_EVAL_MODEL_ROLE", "INSPECT_LOG_DIR"):
            patch.delenv(name, raising=False)
        scripted.SCRIPTS.update(scripted.proper_scripts())
        scripted.SCRIPTS[ANSWERS] = Script(reads)
        yield scripted.SCRIPTS[ANSWERS]
        scripted.SCRIPTS.clear()


@dataclass(frozen=True)
class Qualified:
    """A run of the command with three epochs, and what it left."""

    result: Result
    path: Path
    asked: int
    graded: int
    logs: list[EvalLog]


BEFORE = json.dumps({**bank(), "notes": "Über 名前"}, indent=3, ensure_ascii=False)
"""The bank of `qualified` as it was."""


@pytest.fixture(scope="module")
def qualified(tmp_path_factory: pytest.TempPathFactory) -> Qualified:
    folder = tmp_path_factory.mktemp("qualified")
    path = small.write(folder / "data", probes=bank())
    path.with_name("tiny.probes.json").write_text(BEFORE, encoding="utf-8")
    with _apart(folder) as script:
        result = qualify(path)
        graded = len(scripted.SCRIPTS[GRADES].calls)
        found = logs(folder / "logs" / "qualify")
    return Qualified(result, path, len(script.calls), graded, found)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return small.write(tmp_path / "data", probes=bank())


def qualify(
    *arguments: object, model: str | None = f"scripted/{ANSWERS}", tail: int = TAIL
) -> Result:
    chosen = ["--model", model] if model else []
    given = ["probes", "qualify", *map(str, arguments), *chosen, "--tail-tokens", str(tail)]
    return CliRunner().invoke(main, given)


def probes(path: Path) -> dict[str, Probe]:
    found = load_bank(path.with_name("tiny.probes.json"))
    return {probe.id: probe for probe in found.probes}


def passed(probe: Probe) -> tuple[int, int, int]:
    """Return how often a probe passed with everything, nothing, and the tail."""
    assert probe.qualification is not None
    item = probe.qualification
    return item.full.passed, item.none.passed, item.tail.passed


def logs(folder: Path) -> list[EvalLog]:
    return [read_eval_log(info) for info in list_eval_logs(str(folder), descending=False)]


def test_every_probe_gets_its_verdict(qualified: Qualified) -> None:
    done = qualified.result
    assert done.exit_code == 0, done.output
    found = probes(qualified.path)
    assert {name: passed(probe) for name, probe in found.items()} == {
        "code": (3, 0, 0),
        "next": (3, 0, 3),
        "guessed": (3, 3, 3),
        "hopeless": (0, 0, 0),
    }
    verdicts = {name: probe.qualification for name, probe in found.items()}
    assert [(v.qualified, v.region) for v in verdicts.values() if v] == [
        (True, "history"),
        (True, "tail"),
        (False, "tail"),
        (False, "history"),
    ]
    code = verdicts["code"]
    assert code is not None
    assert (code.model, code.tail_tokens, code.cut) == (f"scripted/{ANSWERS}", TAIL, 11)
    assert code.judged_by.startswith("facts: ")
    assert (code.full.fact_share, code.none.fact_share, code.full.runs) == (1.0, 0.0, 3)
    assert (qualified.asked, qualified.graded) == (4 * 3 * 3, 0)
    assert "  2 of 4 qualify, 1 of them answered by the kept tail alone\n" in done.stdout
    assert "code      full 3/3  none 0/3  tail 0/3  qualified\n" in done.stdout


def test_nothing_else_in_the_bank_is_changed(qualified: Qualified) -> None:
    text = qualified.path.with_name("tiny.probes.json").read_text(encoding="utf-8")
    data = json.loads(text)
    for probe in data["probes"]:
        assert probe.pop("qualification")["full"]["runs"] == 3
    assert json.dumps(data, indent=3, ensure_ascii=False) == BEFORE
    assert text.startswith('{\n   "fixture"')


def test_a_probe_that_cannot_be_judged_gets_no_verdict_and_is_named(
    qualified: Qualified, path: Path, script: Script
) -> None:
    shutil.copytree(qualified.path.parent, path.parent, dirs_exist_ok=True)
    before = probes(path)

    def breaks(call: Call) -> str:
        if "error code" in call.last:
            raise RuntimeError("the line is down")
        return reads(call)

    script.reply = breaks
    done = qualify(path, "--epochs", 2)
    assert done.exit_code == 1
    assert "code      no verdict: full, epoch 1: " in done.stdout
    assert "the line is down" in done.stdout
    after = probes(path)
    assert after["code"] == before["code"]
    assert after["next"].qualification is not None
    assert after["next"].qualification.full.runs == 2


def graded(call: Call, accuracy: float, completeness: float) -> str:
    scores = {"accuracy": accuracy, "completeness": completeness}
    results = [
        {"criterionId": id_, "score": scores.get(id_.split("_")[0], 3), "reasoning": "Because."}
        for id_ in scripted.criteria_in(call.text)
    ]
    facts = scripted.fact_words(scripted.facts_in(call.text))
    return json.dumps({"criterionResults": results, "facts": facts})


def test_a_grader_can_judge_instead(path: Path, script: Script) -> None:
    script.reply = lambda call: "The code that begins with E44, I should say."
    grader = scripted.SCRIPTS[GRADES]
    grader.reply = lambda call: graded(call, 5, 4)
    chosen = ("--grader", f"scripted/{GRADES}", "--epochs", 1)
    assert qualify(path, *chosen).exit_code == 0
    assert len(grader.calls) == 4 * 3
    found = probes(path)["code"].qualification
    assert found is not None
    assert passed(probes(path)["code"]) == (1, 1, 1)
    assert (found.full.fact_share, found.qualified) == (1.0, False)
    assert found.judged_by == f"rubric: accuracy and completeness of 4, by scripted/{GRADES}"
    assert qualify(path, *chosen, "--threshold", 4.5).exit_code == 0
    assert passed(probes(path)["code"]) == (0, 0, 0)


def test_a_dry_run_says_what_it_would_cost_and_does_nothing(
    path: Path, tmp_path: Path, script: Script
) -> None:
    out = tmp_path / "not" / "there"
    done = qualify(path, "--dry-run", "--grader", f"scripted/{GRADES}", "--out", out)
    assert done.exit_code == 0, done.output
    assert not out.parent.exists()
    lines = done.stdout.splitlines()
    assert lines[0].startswith("4 probes, 3 epochs, answered by scripted/answers, judged by rubric")
    assert [line.split(" calls")[0] for line in lines[1:]] == [
        "  full: 12",
        "  none: 12",
        "  tail: 12",
        "  together: 72",
    ]
    sent = {line.split(":")[0].strip(): _tokens(line) for line in lines[1:4]}
    assert sent["full"] > sent["tail"] > sent["none"] > 0
    assert not script.calls
    assert not (tmp_path / "logs").exists()
    assert all(probe.qualification is None for probe in probes(path).values())


def _tokens(line: str) -> int:
    return int(line.split("calls, ")[1].split(maxsplit=1)[0].replace(",", ""))


def test_a_probe_is_asked_at_its_own_cut(path: Path) -> None:
    cut = {**bank()["probes"][0], "cut": 4}
    small.write(path.parent, probes={"fixture": "tiny", "probes": [cut, bank()["probes"][1]]})
    assert qualify(path, "--epochs", 1).exit_code == 0
    found = {name: probe.qualification for name, probe in probes(path).items()}
    assert {name: item.cut for name, item in found.items() if item} == {"code": 4, "next": 11}
    before = path.with_name("tiny.probes.json").read_bytes()
    assert qualify(path, "--epochs", 1, "--out", path.parent / "out").exit_code == 0
    assert path.with_name("tiny.probes.json").read_bytes() == before
    assert load_bank(path.parent / "out" / "tiny.probes.json").probes[0].qualification is not None
    done = qualify(path, "--epochs", 1, "--cut", 4, "--dry-run")
    assert done.stdout.startswith("1 probes, ")
    assert "tiny: not asked, they belong to another cut: 'next'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "expected", "code"),
    [
        (["--threshold", "3"], "--threshold: only with --grader", 1),
        (["--cut", "middle"], "cut: ", 1),
        (["--probes", "nowhere"], "nowhere: no such file or folder", 2),
    ],
)
def test_bad_arguments_end_before_anything_is_asked(
    path: Path, script: Script, arguments: list[str], expected: str, code: int
) -> None:
    done = qualify(path, *arguments)
    assert done.exit_code == code
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    assert expected in done.stderr
    assert not script.calls


def test_an_edit_puts_the_verdict_out_of_date(qualified: Qualified, path: Path) -> None:
    shutil.copytree(qualified.path.parent, path.parent, dirs_exist_ok=True)
    file = path.with_name("tiny.probes.json")
    checked = ["probes", "check", str(path), "--tail-tokens", str(TAIL)]
    done = CliRunner().invoke(main, checked)
    assert "out of date" not in done.stdout
    assert (
        "('hopeless').qualification: not qualified: the full history passes 0 of 3" in done.stdout
    )
    assert "('guessed').qualification: not qualified: nothing at all passes 3 of 3" in done.stdout
    assert "tiny: verdicts: qualified 2, not qualified 2, unknown 0" in done.stdout
    data = json.loads(file.read_text(encoding="utf-8"))
    data["probes"][0]["question"] += " Exactly, please."
    file.write_text(json.dumps(data), encoding="utf-8")
    done = CliRunner().invoke(main, checked)
    assert done.stdout.count("the verdict is out of date") == 1
    assert "('code').qualification: the verdict is out of date" in done.stdout
    assert "tiny: verdicts: qualified 1, not qualified 2, unknown 1" in done.stdout
    fixture = small.conversation()
    fixture["messages"][1]["content"] += " Thank you."
    path.write_text(json.dumps(fixture), encoding="utf-8")
    assert CliRunner().invoke(main, checked).stdout.count("the verdict is out of date") == 4


@pytest.mark.parametrize("facts", [[], [{"fact": "The code is the fifth one.", "derived": True}]])
def test_what_is_not_looked_up_needs_a_grader_and_unanswerable_ones_get_no_verdict(
    path: Path, facts: list[dict[str, Any]]
) -> None:
    data = bank()
    data["probes"] = [
        {**data["probes"][0], "expected_facts": facts, "reference_answer": "E4401"},
        {"id": "none", "type": "recall", "question": "Who asked?", "unanswerable": True},
    ]
    path.with_name("tiny.probes.json").write_text(json.dumps(data), encoding="utf-8")
    without = qualify(path, "--epochs", 1)
    assert without.exit_code == 1
    assert "--grader" in without.stdout
    graded = qualify(path, "--epochs", 1, "--grader", f"scripted/{GRADES}")
    assert graded.exit_code == 0, graded.output
    verdicts = {name: probe.qualification for name, probe in probes(path).items()}
    assert verdicts["none"] is None
    assert verdicts["code"] is not None
    assert verdicts["code"].full.fact_share is None
