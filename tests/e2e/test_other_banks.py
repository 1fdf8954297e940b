"""Banks of others: a reference answer or a rubric alone, derived facts, and questions without
an answer are loaded, checked, put to a model, graded and reported.
"""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result
from inspect_ai.log import EvalLog, EvalSample

from compression_eval.cli import main
from compression_eval.fixtures.loading import load_pair
from compression_eval.grading.rubric import load_rubric
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, GRADES, Scripts, proper_grading

EMBEDDED: dict[str, Any] = {"model": "embedded/lexical", "model_roles": {}}
DOCS = Path(__file__).parents[2] / "docs" / "authoring.md"
WRONG = "python 3.7"


def bank() -> dict[str, Any]:
    """Return a bank with one probe of each kind."""

    def probe(name: str, question: str, **fields: Any) -> dict[str, Any]:
        return {"id": name, "type": "recall", "question": question, **fields}

    derived = {"fact": "twice as often and one more", "derived": True}
    return {
        "fixture": "tiny",
        "probes": [
            probe("reference", "What was found out?", reference_answer="The store rejects them."),
            probe("rubric", "How are things?", rubric="Names the store; is one sentence long."),
            probe(
                "derived",
                "How does the limit compare to before?",
                expected_facts=[derived],
                reference_answer="It is tried two times more, and then once.",
            ),
            probe(
                "unanswerable",
                "Which version of the interpreter was asked for?",
                unanswerable=True,
                forbidden_facts=[WRONG],
            ),
        ],
    }


def run(tmp_path: Path, log_dir: Path, **given: Any) -> dict[str, EvalSample]:
    fixture = small.write(tmp_path / "data", probes=bank())
    log: EvalLog = small.run(
        log_dir, fixture, epochs=1, compressor="full", compressor_args={}, **given
    )
    return {small.names(sample).partition("/")[2]: sample for sample in small.samples(log)}


def command(*arguments: object) -> Result:
    return CliRunner().invoke(main, list(map(str, arguments)))


def test_a_grader_is_told_what_each_asks_for(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    scripts[ANSWERS].reply = lambda call: "I do not know."
    found = run(tmp_path, log_dir, state_facts="reader")
    texts = load_rubric().grader
    told: dict[str, str] = {}
    truths: dict[str, dict[str, Any]] = {}
    for call in scripts[GRADES].calls:
        for line in call.text.splitlines():
            if line.startswith('{"probe_question"'):
                request = json.loads(line)
                told[request["probe_question"]] = call.text
                truths[request["probe_question"]] = request["ground_truth"]
    by_id = {probe["id"]: probe["question"] for probe in bank()["probes"]}
    for name, question in by_id.items():
        assert (texts.unanswerable in told[question]) == (name == "unanswerable")
        assert (texts.free_text in told[question]) == (name in ("reference", "rubric"))
        assert ("unanswerable" in truths[question]) == (name == "unanswerable")
    assert truths[by_id["rubric"]]["question_rubric"].startswith("Names the store")
    knowledge = {name: small.values(item, "six_dimensions") for name, item in found.items()}
    # The grader gives 4 to all; not to know is 0 by rule but where that is right.
    assert {name: each["knowledge"] for name, each in knowledge.items()} == {
        "reference": 0,
        "rubric": 0,
        "derived": 0,
        "unanswerable": 4,
    }
    facts = {name: small.values(item, "fact_retention") for name, item in found.items()}
    for name, each in facts.items():
        assert math.isnan(each["fact_recall"]) == (name != "derived")
        assert math.isnan(each["fact_survival"]) == (name != "derived")
    assert facts["unanswerable"]["fact_violations"] == 0
    assert not any(sample.error for sample in found.values())


def test_an_answer_to_what_has_none_is_wrong(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    scripts[ANSWERS].reply = lambda call: f"They asked for {WRONG}."
    scripts[GRADES].reply = lambda call: proper_grading(call).replace("missing", "stated")
    # None of them names evidence, and all are put at an earlier cut too.
    all_of_them = run(tmp_path, log_dir, cut=6)
    assert len(all_of_them) == len(bank()["probes"])
    found = all_of_them["unanswerable"]
    assert small.values(found, "fact_retention")["fact_violations"] == 1
    assert found.target == ["(unanswerable)"]


def test_commands_take_them(tmp_path: Path, log_dir: Path, scripts: Scripts) -> None:
    scripts[GRADES].reply = proper_grading
    run(tmp_path, log_dir)
    fixture = tmp_path / "data" / "tiny.json"
    checked = command("fixtures", "check", fixture)
    assert "0 errors" in checked.output
    probes = command("probes", "check", fixture)
    assert probes.exit_code == 0, probes.output
    assert "every fact" not in probes.output
    assert "does not contain" not in checked.output
    assert "system prompt alone holds" not in probes.output
    for arguments in (
        ("facts", log_dir),
        ("report", log_dir, "--out", tmp_path / "report"),
        ("compare", log_dir, log_dir),
    ):
        found = command(*arguments)
        assert not isinstance(found.exception, Exception) or found.exit_code in (0, 1), arguments
        assert "Traceback" not in found.output
    scrubbed = command("scrub", fixture, "--out", tmp_path / "scrubbed")
    assert scrubbed.exit_code == 0, scrubbed.output
    assert load_pair(tmp_path / "scrubbed" / "tiny.json").bank.probes[3].unanswerable


def test_the_conversion_in_the_docs(tmp_path: Path, log_dir: Path) -> None:
    (script,) = re.findall(r'```python\n("""Convert LoCoMo.*?)```', DOCS.read_text("utf-8"), re.S)
    (tmp_path / "locomo.py").write_text(script, encoding="utf-8")

    def turn(name: str, number: str, text: str, **more: str) -> dict[str, str]:
        return {"speaker": name, "dia_id": number, "text": text, **more}

    def asked(category: int, question: str, *evidence: str, **answer: Any) -> dict[str, Any]:
        return {"question": question, "category": category, "evidence": list(evidence), **answer}

    talk = {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:00 pm on 8 May, 2023",
        "session_1": [
            turn("Ada", "D1:1", "I planted a pear tree yesterday."),
            turn("Bo", "D1:2", "I would rather sail.", blip_caption="a small boat"),
        ],
        "session_2_date_time": "2:00 pm on 9 June, 2023",
        "session_2": [turn("Bo", "D2:1", "The boat is sold.")],
        "session_10_date_time": "3:00 pm on 1 July, 2023",
        "session_10": [turn("Ada", "D10:1", "The tree bears fruit.")],
    }
    questions = [
        asked(2, "When was the tree planted?", "D1:1", answer=2023),
        asked(3, "Would Bo enjoy a regatta?", answer="Likely yes"),
        asked(5, "What did Bo plant?", "D1:1", "D9:9", adversarial_answer="a pear tree"),
    ]
    data = [{"sample_id": "talk-1", "conversation": talk, "qa": questions}]
    (tmp_path / "locomo.json").write_text(json.dumps(data), encoding="utf-8")
    out = tmp_path / "banks"
    subprocess.run(
        [sys.executable, tmp_path / "locomo.py", tmp_path / "locomo.json", out], check=True
    )
    pair = load_pair(out / "talk-1.json")
    assert [message.role for message in pair.fixture.messages] == [
        *("user", "assistant", "assistant", "user")
    ]
    fact, aside, without = pair.bank.probes
    assert (fact.expected_facts[0].fact, fact.expected_facts[0].evidence) == ("2023", [0])
    assert (aside.expected_facts, aside.reference_answer) == ([], "Likely yes")
    assert (without.unanswerable, without.forbidden_facts[0].fact) == (True, "a pear tree")
    log = small.run(
        log_dir, out / "talk-1.json", epochs=1, compressor="full", compressor_args={}, **EMBEDDED
    )
    assert len(small.samples(log)) == 3
