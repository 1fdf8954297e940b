"""``compression-eval probes generate`` without a model, as a user runs it."""

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_pair
from tests.authoring import story
from tests.fixtures.building import assistant, bank_data, call, result, system, user, write

SAMPLES = os.environ.get("COMPRESSION_EVAL_SAMPLES")


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
    assert {probe.cut for probe in load_pair(fixture).bank.probes} == {18, story.CUT}
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


def test_the_output_says_what_there_is_and_why_not_more(fixture: Path) -> None:
    found = generate(fixture)
    assert "recall 1, artifact 1, continuation 1, decision 0; early " in found.stdout
    assert "recall: 1 of 3: nothing more was found" in found.stdout
    assert "reading 9 tool calls" in found.stderr
    assert "too few" in found.stdout
    assert "--model" in found.stdout


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


@pytest.mark.slow
def test_the_same_bytes_come_out_in_another_process(tmp_path: Path) -> None:
    messages = story.messages()
    for number, name in enumerate(("a/one.py", "b/one.py", "a/two.py", "b/two.py", "c/x.py")):
        written = call(f"w{number}", "write_file", path=name, content="x = 1")
        messages[14:14] = [assistant("", written), result(f"w{number}", f"Created {name}")]
    cut = story.CUT + 10
    fixture = story.story_file(tmp_path, messages=messages, cuts=[cut])
    texts = set()
    for seed in "1234":
        command = [sys.executable, "-m", "compression_eval.cli", "probes", "generate", str(fixture)]
        command += ["--force", "--tail-tokens", str(story.TAIL), "--out", str(tmp_path / seed)]
        subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": seed})
        texts.add((tmp_path / seed / "story.probes.json").read_bytes())
    assert len(texts) == 1


def test_an_existing_bank_is_not_overwritten_unless_told(fixture: Path) -> None:
    bank = write(fixture.with_name("story.probes.json"), bank_data())
    before = bank.read_bytes()
    refused(generate(fixture), "story.probes.json: exists already", "--force")
    assert bank.read_bytes() == before
    assert generate(fixture, "--force").exit_code == 0
    assert bank.read_bytes() != before


def test_a_bank_in_the_folder_for_banks_counts_as_existing(tmp_path: Path) -> None:
    fixture = story.story_file(tmp_path / "fixtures")
    bank = write(tmp_path / "probes" / "story.probes.json", bank_data())
    refused(generate(fixture), "exists already")
    assert generate(fixture, "--force").exit_code == 0
    assert bank.read_text(encoding="utf-8").startswith('{\n "fixture": "story"')
    assert not fixture.with_name("story.probes.json").exists()


def test_probes_of_several_cuts_stand_in_one_bank(fixture: Path) -> None:
    found = generate(fixture, "--cut", 0.7, "--cut", "end")
    assert found.exit_code == 0, found.output
    probes = load_pair(fixture).bank.probes
    assert len({probe.cut for probe in probes}) == 2
    assert len({probe.id for probe in probes}) == len(probes)
    assert all(
        max(fact.evidence) < (probe.cut or 0) for probe in probes for fact in probe.expected_facts
    )


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("ps -ef | rg 'bun|tsc|biome|worker-robin'", "dev 4411 bun run build"),
        ("curl -v http://10.1.2.3:4000/refresh", "* connect from 10.1.2.9 port 43078 failed: no"),
        ('npx markdownlint-cli2 "docs/x.md"', "docs/x.md:22:121 error MD013/line-length Too long"),
        ("bd update rows-1 --claim --json", '{"notes": "0/2 passed quality, 0 execution errors."}'),
        ("go test ./... && golangci-lint run ./...", "ok  \texample/rows\t0.4s\n0 issues."),
        ("node verify_changes.js", "Found 8 error events\nAll modifications verified"),
        ("npm run dev", "> next dev\nError: read ECONNRESET\n at async (src/lib/rows.ts:1:2)"),
    ],
)  # fmt: skip
def test_what_only_looks_like_a_count_or_a_check_is_not_asked(
    tmp_path: Path, command: str, output: str
) -> None:
    messages = [
        system(),
        user("Look into why the import of the partner export drops rows."),
        assistant("", call("c1", command=command)),
        result("c1", output),
        user(f"This is what I get:\n{output}"),
        assistant("I looked at it. " * 20),
    ]
    fixture = write(tmp_path / "x.json", {"name": "x", "messages": messages})
    refused(generate(fixture), "nothing to ask was found", "--model")


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


def test_a_conversation_that_is_kept_whole_gets_no_bank(fixture: Path) -> None:
    found = generate(fixture, "--tail-tokens", 50_000)
    refused(found, "nothing is compressed", "story.json: no probe could be made: nothing is")
    assert not fixture.with_name("story.probes.json").exists()


def test_the_others_get_theirs(fixture: Path, tmp_path: Path) -> None:
    empty = {"name": "empty", "messages": [system(), user("Hello, who are you?")]}
    write(tmp_path / "empty.json", empty)
    found = generate(tmp_path)
    assert found.exit_code == 0
    assert f"passed over (1):\n  {tmp_path / 'empty.json'}: no probe could be made" in found.stderr
    assert fixture.with_name("story.probes.json").exists()
    assert not (tmp_path / "empty.probes.json").exists()
    again = generate(tmp_path)
    refused(again, "nothing was done; passed over (2):", "story.probes.json: exists already")
    chat = write(tmp_path / "chat.json", {**empty, "name": "chat"})
    fixture.with_name("story.probes.json").unlink()
    several = f"the kept tail: {chat}, {tmp_path / 'empty.json'}"
    assert several in generate(tmp_path).stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--cut", "17"), "cut: 17 would part a tool call from its result"),
        (("--cut", "400"), "cut: 400 is out of range"),
        (("--cut", "half"), "'half' is no number of messages"),
        (("--per-type", "0"), "0 is not in the range"),
        (("--temperature", "1"), "temperature: only with --model"),
        (("--model", "mockllm/model", "--jobs", "2"), "--jobs: only without --model"),
        (("-M", "a=1"), "model_args: only with --model"),
        (("--model", "none-such/x"), "model 'none-such/x': cannot be used"),
        (("--model", "mockllm/model", "-M", "a"), "-M: expected NAME=VALUE"),
        (("--model", "mockllm/model", "-M", "a=[1"), "-M: a: not a YAML value"),
    ],
)
def test_wrong_arguments_are_named_and_nothing_is_written(
    fixture: Path, arguments: tuple[str, ...], said: str
) -> None:
    refused(generate(fixture, *arguments), said)
    assert [path.name for path in fixture.parent.iterdir()] == ["story.json"]


def test_two_fixtures_of_one_file_name_do_not_share_a_bank(fixture: Path, tmp_path: Path) -> None:
    other = story.story_file(tmp_path / "other")
    refused(generate(fixture, other, "--out", tmp_path / "banks"), "would both write it")
    assert not (tmp_path / "banks").exists()


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


def test_a_real_session(tmp_path: Path) -> None:
    if SAMPLES is None:
        pytest.skip("COMPRESSION_EVAL_SAMPLES names no folder with sample sessions")
    source = Path(SAMPLES) / "fixtures" / "real-cc-mid.json"
    found = generate(source, "--out", tmp_path, "--cut", 0.6)
    assert found.exit_code == 0, found.output
    bank = load_pair(source, tmp_path).bank
    assert "continuation" in {probe.type for probe in bank.probes}
    assert "too few" in found.stdout


def test_fixtures_in_a_parquet_file_are_asked_about_and_their_banks_checked(
    fixture: Path, tmp_path: Path
) -> None:
    corpus = tmp_path / "corpus.parquet"
    assert CliRunner().invoke(main, ["fixtures", "pack", str(fixture), "--out", str(corpus)])
    refused(generate(corpus), "corpus.parquet: row 1: no file can be written beside it", "--out")
    assert generate(corpus, "--out", tmp_path / "banks").exit_code == 0
    assert generate(fixture).exit_code == 0
    bank = (tmp_path / "banks" / "story.probes.json").read_bytes()
    assert bank == fixture.with_name("story.probes.json").read_bytes()
    given = ["probes", "check", str(corpus), "--probes", str(tmp_path / "banks")]
    checked = CliRunner().invoke(main, given)
    assert checked.exit_code == 0, checked.output
    assert "1 checked: 0 errors" in checked.stdout
    (row,) = pq.read_table(corpus).to_pylist()
    pq.write_table(pa.Table.from_pylist([row | {"file": "../evil", "probes": ""}]), corpus)
    refused(generate(corpus, "--out", tmp_path / "b"), "'../evil' cannot be the name of a file")
    assert not list(tmp_path.rglob("evil*"))
