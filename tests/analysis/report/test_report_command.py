"""`compression-eval report` on logs of real runs: its files, its figures, and what it refuses."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import EvalError, EvalLog, read_eval_log, write_eval_log

from compression_eval.analysis import facts_frame, samples_frame, states_frame
from compression_eval.grading.rubric import FORMULA, structure
from tests.analysis.embedded import embedded
from tests.analysis.report.conftest import EVIL, report
from tests.e2e import small

CHARTS = {"frontier", "radar", "dimensions", "survival", "stages"}


def figures(made: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made / "figures.json").read_text("utf-8"))
    return found


def log_of(logs: Path, compressor: str) -> EvalLog:
    for path in sorted(logs.glob("*.eval")):
        log = read_eval_log(str(path))
        if (log.eval.metadata or {})["compressor"]["name"] == compressor:
            return log
    raise AssertionError(f"no log of {compressor}")


def refused(*arguments: str | Path, exit_code: int = 1) -> str:
    done = report(*arguments)
    assert done.exit_code == exit_code, done.output
    assert isinstance(done.exception, SystemExit)
    error = done.stderr[done.stderr.index("Error: ") :]
    assert error.count("\n") == 1
    return error.removeprefix("Error: ").rstrip("\n")


def test_the_files_are_there_and_nothing_else(made: Path) -> None:
    written = {str(path.relative_to(made)) for path in made.rglob("*") if path.is_file()}
    charts = {f"charts/{name}.{kind}" for name in CHARTS for kind in ("svg", "png")}
    assert written == charts | {"index.html", "report.md", "figures.json"}
    assert not list(made.parent.glob(".report.*"))


def test_figures_recompute_from_the_frames(made: Path, logs: Path) -> None:
    of_arm = figures(made)["of_arm"]
    samples, states, facts = samples_frame(logs), states_frame(logs), facts_frame(logs)
    measures = ["knowledge", "overall", *structure().dimensions]
    by_probes = samples.groupby(["arm", "unit", "sample"])[measures].mean()
    for arm in ("full", "none", "tail"):
        row = of_arm[arm]["table"][-1]
        for measure in measures:
            values = by_probes.loc[arm][measure]
            assert row["cells"][measure]["value"] == pytest.approx(values.mean(), nan_ok=True)
            assert row["cells"][measure]["probes"] == values.notna().sum()
        own = samples[samples["arm"] == arm]
        by_probe = own.groupby("sample")["knowledge"].mean()
        assert of_arm[arm]["estimates"]["knowledge"]["mean"] == pytest.approx(by_probe.mean())
        kept = states[states["arm"] == arm]["tokens_state"].mean()
        assert of_arm[arm]["costs"]["tokens_after"] == pytest.approx(kept)
        stages = facts[facts["arm"] == arm]["stage"].value_counts().to_dict()
        assert of_arm[arm]["survival"]["stages"] == stages
        survived = facts[facts["arm"] == arm]["in_state"].astype(bool)
        cycle = of_arm[arm]["survival"]["by_cycle"]["1"]
        assert (cycle["in_state"], cycle["known"]) == (survived.sum(), len(survived))
    means = samples.groupby("arm")["knowledge"].mean()
    expected = (means["tail"] - means["none"]) / (means["full"] - means["none"])
    found = figures(made)["retained"]["tail"]["measures"]["knowledge"]["share"]
    assert found == pytest.approx(expected)


def test_a_failed_arm_is_a_failure_and_no_number(made: Path) -> None:
    failed = figures(made)["of_arm"]["trim"]
    assert failed["estimates"] == {}
    assert all(cell["value"] is None for cell in failed["table"][-1]["cells"].values())
    assert (failed["failures"]["failed"], failed["failures"]["samples"]) == (6, 6)
    assert failed["failures"]["failed_states"] == 2
    assert figures(made)["frontier"]["left_out"] == ["trim"]


def test_markdown_has_the_form_to_paste(made: Path) -> None:
    text = (made / "report.md").read_text("utf-8")
    heads = "| Fixture | Probes | Knowledge | Facts in answer | Accuracy | Context | Artifact |"
    assert f"{heads} Complete | Continuity | Instruction | Overall |" in text
    assert "No language model was involved" in text
    assert f"{FORMULA}; a sample that failed has no score".removeprefix("dimension") in text
    assert "every conversation counts the same" in text
    assert "| tiny@11 | code | " in text.partition("### Misses")[2]
    costs = text.partition("### Cost and time")[2].partition("###")[0]
    cost = figures(made)["of_arm"]["tail"]["costs"]
    sizes = f"| {cost['tokens_before']:,.0f} | {cost['tokens_after']:,.0f} |"
    assert sizes in next(line for line in costs.splitlines() if line.startswith("| tail |"))
    failed = text.partition("### Failures")[2].partition("###")[0]
    lines = {line.split(":")[0]: line for line in failed.splitlines()}
    assert "without a score: compression_failed: " in lines["trim"]
    assert "without" not in lines["tail"]
    assert "<script" not in text
    assert "Published figures, not measured here" in text
    assert "| anchored iterative | 4.04 | 4.01 | 2.45 | 4.44 | 3.80 | 4.99 | 3.70 | 3.96 |" in text


def test_arms_are_named_by_what_differs_and_by_prompt_files(
    run_folder: Path, tmp_path: Path
) -> None:
    prompt = tmp_path / "keep @octocat #12.md"
    prompt.write_text("Keep what @octocat said.", encoding="utf-8")
    tiny = run_folder / "data" / "tiny.json"
    given: dict[str, Any] = {"compressor": "regenerative", "compressor_args": small.BUDGETS}
    for arguments in (given, given | {"prompt": str(prompt)}):
        embedded(tmp_path / "logs", tiny, **arguments)
    assert report(tmp_path / "logs", "--out", tmp_path / "out").exit_code == 0
    arms = {arm["name"] for arm in figures(tmp_path / "out")["arms"]}
    assert arms == {"regenerative", "regenerative (prompt keep @octocat #12.md)"}
    found = figures(tmp_path / "out")["frontier"]
    (pair,) = found["pairs"]
    assert (pair["change"], pair["verdict"]) == (0, "no change")
    assert pair["p_value"] is None, "nothing is random"
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "gave the same answers, byte by byte: nothing was compared" in page
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    # Nowhere does it mention a person or refer to an issue, not in names either.
    assert "octocat" in text
    assert "@octocat" not in text
    assert "#12" not in text
    for name in ("report.md", "index.html"):
        assert str(tmp_path) not in (tmp_path / "out" / name).read_text("utf-8")


def test_a_failure_is_escaped_as_a_reason_is(logs: Path, tmp_path: Path) -> None:
    log = log_of(logs, "tail")
    message = "ask @octocat, see https://example.org #12 <b>_x_</b>"
    assert log.samples
    log.samples[0].error = EvalError(message=message, traceback="", traceback_ansi="")
    log.samples[0].scores = None  # as Inspect leaves a sample that an error ended
    for sample in log.samples:
        sample.store["ProbeRecord:sample"]["state"]["suspect"] = ["it reads like a refusal"]
    log.samples[1].scores["six_dimensions"].value["knowledge"] = 0.5  # type: ignore[index]
    write_eval_log(log, str(tmp_path / "failed.eval"))
    assert report(tmp_path / "failed.eval", "--out", tmp_path / "out").exit_code == 0
    text = (tmp_path / "out" / "report.md").read_text("utf-8")
    failed = next(line for line in text.splitlines() if "without a score: " in line)
    assert "octocat" in failed
    for part in ("@octocat", "://example", "#12", "<b>", "_x_"):
        assert part not in failed
    (row,) = figures(tmp_path / "out")["of_arm"].values()
    assert sum(row["failures"]["reasons"].values()) == 1
    assert row["suspect"] == row["failures"]["states"] == 2
    page = (tmp_path / "out" / "index.html").read_text("utf-8")
    assert "1 of 6" in page
    assert "2 suspect" in page
    # One answer of two went wrong, so there are intervals.
    assert "Knowledge: 0 to 5, with its 95 % interval on these conversations; every arm" in page
    assert "<figcaption>Means with 95 % intervals on these conversations. Hollow" in page


def test_facts_judged_by_different_words_are_noted(logs: Path, tmp_path: Path) -> None:
    read = log_of(logs, "tail")
    for sample in read.samples or []:
        metadata = (sample.scores or {})["fact_retention"].metadata or {}
        metadata |= {"recall_by": "grader", "survival_by": "reader"}
    write_eval_log(read, str(tmp_path / "read.eval"))
    full = log_of(logs, "full").location
    assert report(full, tmp_path / "read.eval", "--out", tmp_path / "out").exit_code == 0
    assert figures(tmp_path / "out")["differing"] == [
        "who judged the facts in answers: grader, look-up",
        "who judged the facts in states: look-up, reader",
    ]


def test_where_nothing_was_to_be_judged_nobody_is_missed(logs: Path, tmp_path: Path) -> None:
    for compressor in ("tail", "full"):
        log = log_of(logs, compressor)
        for number, sample in enumerate(log.samples or []):
            score = (sample.scores or {})["fact_retention"]
            metadata = score.metadata or {}
            metadata |= {"recall_by": "grader", "survival_by": "reader"}
            # As of an empty answer, of a probe without expected facts, and of an empty state.
            if number in (0, 1):
                name = ("recall", "survival")[number]
                metadata[f"{name}_by"] = "look-up"
                score.value |= {f"fact_{name}": math.nan}  # type: ignore[operator]
            if number == 2:
                metadata["survival_by"] = "look-up"
                sample.store["ProbeRecord:sample"]["state"]["state_tokens"] = 0
        write_eval_log(log, str(tmp_path / f"{compressor}.eval"))
    assert report(tmp_path, "--out", tmp_path / "out").exit_code == 0
    assert figures(tmp_path / "out")["differing"] == []


def test_the_page_says_what_it_was_made_from(made: Path, logs: Path) -> None:
    page = (made / "index.html").read_text("utf-8")
    log = log_of(logs, "tail")
    assert str(log.eval.task_version) in page
    counter = samples_frame(logs)["token_counter"].iloc[0]
    for part in (counter, "embedded/lexical", "No language model"):
        assert part in page
    digest = samples_frame(logs)["rubric_digest"].dropna().iloc[0]
    assert digest[:12] in page
    assert str(made) not in page
    assert EVIL not in page
    assert "cd ../logs &amp;&amp; inspect view --log-dir ." in page


def test_a_second_report_replaces_the_first_and_leaves_the_rest(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(logs, "tail").location
    out = tmp_path / "out"
    out.mkdir()
    make = os.mkdir

    def mkdir(path: str, *mode: int) -> None:  # nothing but the folder may be written to
        assert Path(path) == out or Path(path).parent != tmp_path
        make(path, *mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    (out / "notes.txt").write_text("mine", encoding="utf-8")
    (out / "report.md").write_text("old", encoding="utf-8")
    assert report(log, "--out", out).exit_code == 0
    assert (out / "notes.txt").read_text("utf-8") == "mine"
    assert (out / "report.md").read_text("utf-8").startswith("## Compression report")
    for name in ("report.md", "index.html"):  # published figures are there on request only
        assert "Published figures" not in (out / name).read_text("utf-8")


def test_a_page_of_something_else_is_not_replaced(logs: Path, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text("<title>My site</title>")
    error = refused(logs, "--out", tmp_path)
    assert error == f"--out: {page} is not a page of compression_eval; name another folder"
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    assert page.read_text() == "<title>My site</title>"


def test_an_early_end_stands_on_the_page(logs: Path, tmp_path: Path) -> None:
    log = log_of(logs, "tail")
    log.status = "cancelled"
    log.samples = (log.samples or [])[:2]
    path = tmp_path / "cut.eval"
    write_eval_log(log, str(path))
    done = report(path, "--out", tmp_path / "out")
    assert done.exit_code == 0
    assert f"{path}: the run ended early (cancelled)\n" in done.stderr
    for name in ("index.html", "report.md"):
        assert "the run ended early (cancelled)" in (tmp_path / "out" / name).read_text("utf-8")


def test_few_questions_rank_no_arms(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> str:
        report(logs, "--out", tmp_path)
        return (tmp_path / "report.md").read_text("utf-8")

    assert "3 probes about 1 conversation: too few to rank arms" in said()
    monkeypatch.setattr("compression_eval.analysis.report.sections.MIN_PROBES", 3)
    assert "too few to rank arms" not in said()


def test_only_failed_samples(logs: Path, tmp_path: Path) -> None:
    path = log_of(logs, "trim").location
    error = refused(path, "--out", tmp_path / "out")
    assert error.startswith("no sample has a score, so there is nothing to report: ")
    assert "compression_failed: not_smaller 6" in error
    assert not (tmp_path / "out").exists()


def test_an_address_that_is_none_is_refused(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "--viewer" in refused(logs, "--out", out, "--viewer", "javascript:alert(1)")
