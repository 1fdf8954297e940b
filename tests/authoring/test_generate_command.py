"""``compression-eval probes generate`` without a model, as a user runs it."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_pair
from tests.authoring import story
from tests.fixtures.building import bank_data, system, user, write


def generate(*arguments: object) -> Result:
    given = map(str, ("--tail-tokens", story.TAIL, *arguments))
    return CliRunner().invoke(main, ["probes", "generate", *given])


def refused(found: Result, *said: str) -> None:
    """Check for one clean message and a non-zero exit."""
    assert found.exit_code != 0
    assert isinstance(found.exception, SystemExit)
    for text in said:
        assert text in found.output


@pytest.fixture
def fixture(tmp_path: Path) -> Path:
    return story.story_file(tmp_path)


def test_cuts_can_be_those_where_the_agent_compacted(tmp_path: Path) -> None:
    made = {"cut": 18, "kind": "summary", "summary": "Rows were flagged."}
    fixture = story.story_file(tmp_path, recorded_compactions=[made])
    assert generate(fixture, "--cut", "recorded").exit_code == 0
    assert {probe.cut for probe in load_pair(fixture).bank.probes} == {18}
    generate(fixture, "--cut", "recorded", "--cut", "auto", "--force")
    probes = load_pair(fixture).bank.probes
    assert {probe.cut for probe in probes} == {18, story.CUT}
    assert len({probe.id for probe in probes}) == len(probes)
    refused(
        generate(story.story_file(tmp_path), "--force", "--cut", "recorded"), "compacted nothing"
    )


def test_a_bank_lies_beside_the_fixture_and_passes_the_checks(fixture: Path) -> None:
    found = generate(fixture)
    assert found.exit_code == 0, found.output
    pair = load_pair(fixture)
    assert pair.bank_path == fixture.with_name("story.probes.json")
    assert Counter(probe.type for probe in pair.bank.probes) == {
        "recall": 1,
        "artifact": 1,
        "continuation": 1,
    }
    assert [probe.id for probe in pair.bank.probes[:3]] == [
        "recall-c22-01",
        "artifact-c22-01",
        "continuation-c22-01",
    ]
    assert {probe.cut for probe in pair.bank.probes} == {story.CUT}
    assert all(probe.origin.startswith("mechanical:") for probe in pair.bank.probes)
    checked = CliRunner().invoke(main, ["fixtures", "check", str(fixture)])
    assert "0 errors" in checked.output, checked.output


@pytest.mark.slow
def test_the_same_comes_out_of_one_process_and_of_several(tmp_path: Path) -> None:
    empty = {"messages": [system(), user("Hello, who are you?")]}
    for name in ("a", "b", "c", "d"):
        data = {**(empty if name == "b" else story.fixture_data()), "name": name}
        write(tmp_path / "in" / f"{name}.json", data)
    made = []
    for jobs in (1, 1, 3):
        out = tmp_path / "out"
        done = generate(tmp_path / "in", "--out", out, "--report", out / "r.json", "--jobs", jobs)
        assert done.exit_code == 0, done.output
        said = [line for line in done.stderr.splitlines() if not line.startswith("asking: ")]
        made.append((done.stdout, said, {p.name: p.read_bytes() for p in out.iterdir()}))
        shutil.rmtree(out)
    assert made[0] == made[1] == made[2]
    assert sorted(made[0][2]) == ["a.probes.json", "c.probes.json", "d.probes.json", "r.json"]


def test_an_existing_bank_is_not_overwritten_unless_told(fixture: Path) -> None:
    bank = write(fixture.with_name("story.probes.json"), bank_data())
    before = bank.read_bytes()
    refused(generate(fixture), "story.probes.json: exists already", "--force")
    assert bank.read_bytes() == before
    assert generate(fixture, "--force").exit_code == 0
    assert bank.read_bytes() != before


def test_no_probe_is_answered_by_the_kept_tail_alone(fixture: Path) -> None:
    """The report says where the tail begins, so that anyone can check."""
    report = fixture.with_name("report.json")
    assert generate(fixture, "--tail-tokens", 90, "--report", report).exit_code == 0
    data: Any = json.loads(report.read_text(encoding="utf-8"))
    assert data["schema"] == 1
    (cut,) = data["fixtures"][0]["cuts"]
    assert cut["tail_starts_at"] == 18
    assert sum(cut["spread"].values()) == len(cut["probes"]) == sum(cut["by_type"].values())
    texts = "\n".join(str(m) for m in story.messages()[18 : story.CUT])
    assert all(any(fact not in texts for fact in probe["facts"]) for probe in cut["probes"])
    reasons = {item["origin"]: item["reasons"][0] for item in cut["dropped"]}
    assert "kept verbatim" in reasons["mechanical:tasks_open"]


def test_the_others_get_theirs(fixture: Path, tmp_path: Path) -> None:
    empty = {"name": "empty", "messages": [system(), user("Hello, who are you?")]}
    write(tmp_path / "empty.json", empty)
    found = generate(tmp_path)
    assert found.exit_code == 0
    assert f"skipped (1):\n  {tmp_path / 'empty.json'}: no probe could be made" in found.stderr
    assert fixture.with_name("story.probes.json").exists()
    assert not (tmp_path / "empty.probes.json").exists()
    again = generate(tmp_path)
    refused(again, "nothing was done; skipped (2):", "story.probes.json: exists already")
    chat = write(tmp_path / "chat.json", {**empty, "name": "chat"})
    fixture.with_name("story.probes.json").unlink()
    several = f"the kept tail: {chat}, {tmp_path / 'empty.json'}"
    assert several in generate(tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cut", "17"), "cut: 17 would part a tool call from its result"),
        (("--temperature", "1"), "temperature: only with --model"),
        (("--model", "none-such/x"), "model 'none-such/x': cannot be used"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(
    fixture: Path, arguments: tuple[str, ...], said: str
) -> None:
    refused(generate(fixture, *arguments), said)
    assert [path.name for path in fixture.parent.iterdir()] == ["story.json"]


def test_what_a_conversation_holds_is_only_data(tmp_path: Path) -> None:
    """Places of a template, control characters and endless lines come out as they went in."""
    messages = story.messages()
    messages[1]["content"] += "\nThe {facts} of {line} \x1b[31m are in FER-512." + "x " * 100_000
    messages[16]["tool_calls"][0]["function"]["arguments"] = json.dumps(
        {"command": "git commit -am 'Keep {facts} and {gap} without a note'"}
    )
    messages[17]["content"] = "[main 4f3c2a1] Keep {facts} and {gap} without a note"
    fixture = story.story_file(tmp_path, messages=messages)
    found = generate(fixture)
    assert found.exit_code == 0, found.output
    probes = load_pair(fixture).bank.probes
    facts = [item.fact for probe in probes for item in probe.expected_facts]
    assert "Keep {facts} and {gap} without a note" in facts
    assert all(probe.question.isprintable() and len(probe.question) < 1000 for probe in probes)
