import json
import time
from importlib.metadata import version
from typing import Any

import pytest

from compression_eval.conversations.scrubbing import (
    Pseudonyms,
    ScrubSettings,
    audit,
    scrub_bank,
)
from compression_eval.conversations.scrubbing.scrubber import MAX_OUTPUT_CHARACTERS, generic_prompt
from compression_eval.errors import DataError
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.writing import fixture_text
from tests.conversations.scrubbing.building import arguments, cleaned, conversation, scrubbed
from tests.fixtures.building import assistant, call, result, system, user

USER = Pseudonyms().of("user", "mmuster")


def test_passes_are_switched_one_by_one() -> None:
    text = "/home/mmuster/x 10.20.30.40"
    assert cleaned(text, skip=["addresses"]) == f"/home/{USER}/x 10.20.30.40"
    assert cleaned(text, profile="secrets") == text


def test_json_in_json_is_decoded_and_written_back_the_way_it_was() -> None:
    inner = '{ "log":"a\\n/Users/mmuster/x" ,"n":1.0,"ü":"\\u00e9 \\/Users\\/mmuster"}'
    outer = json.dumps({"payload": inner, "/home/mmuster/f": 1}, indent=3)
    made = call("c1")
    made["function"]["arguments"] = outer
    done = scrubbed(conversation(user("x"), assistant("", made), result("c1", inner)))
    assert done.fixture.messages[2].text == inner.replace("mmuster", USER)
    assert done.fixture.messages[1].calls[0].function.arguments == outer.replace("mmuster", USER)
    assert arguments(done, 1)["payload"] == inner.replace("mmuster", USER)


def test_a_key_in_json_tells_what_its_value_is_and_repeated_keys_count() -> None:
    left = cleaned('{"client_secret": "q7Zx81kLmn", "client_secret": "w8Zx81kLmn"}')
    assert "q7Zx81kLmn" not in left
    assert "w8Zx81kLmn" not in left
    assert list(json.loads(left)) == ["client_secret"]


def test_every_field_is_reached_and_ids_stay() -> None:
    tool = {
        "name": "run",
        "description": "in /home/mmuster/x",
        "parameters": {"properties": {"/home/mmuster/p": {"type": "string"}}},
    }
    fixture = conversation(
        user("x"),
        assistant("", call("toolu_mmuster1", path="/home/mmuster/x")),
        result("toolu_mmuster1", "ok"),
        name="demo-mmuster",
        description="/home/mmuster/x",
        notes="mmuster",
        model="mmuster/model",
        tools=[{"type": "function", "function": tool}],
        recorded_compactions=[
            {"cut": 3, "summary": "by mmuster", "state": [0, user("mmuster asked")]}
        ],
        source={"origin": "pi", "caveats": ["read from /home/mmuster/x"]},
    )
    text = fixture_text(scrubbed(fixture).fixture)
    assert text.replace("toolu_mmuster1", "").count("mmuster") == 0
    assert text.count("toolu_mmuster1") == 2
    assert text.count(USER) == 10
    assert '"origin": "pi"' in text


def test_orphans_go_and_everything_that_counts_messages_follows() -> None:
    fixture = conversation(
        system(),
        user("one"),
        assistant(" "),
        user("two"),
        assistant("", call("c1")),
        result("c1", "out"),
        assistant("done"),
        result("c9", "late"),
        cuts=[3, 6, 7],
        recorded_compactions=[{"cut": 6, "state": [0, 2, 3, user("s")]}],
    )
    done = scrubbed(fixture)
    assert [message.text for message in done.fixture.messages] == [
        *("You are a coding agent.", "one", "two", "", "out", "done")
    ]
    assert done.moved == {0: 0, 1: 1, 3: 2, 4: 3, 5: 4, 6: 5}
    assert done.fixture.cuts == [2, 5, 6]
    compaction = done.fixture.recorded_compactions[0]
    assert compaction.cut == 5
    assert compaction.state is not None
    assert compaction.state[:2] == [0, 2]


def test_reasoning_goes_from_what_a_compaction_left_too() -> None:
    left = assistant("<think>They will not like it.</think>Done so far: the queue.")
    fixture = conversation(
        user("one"),
        assistant("two"),
        cuts=[3],
        recorded_compactions=[{"cut": 3, "state": [0, left]}],
    )
    (compaction,) = scrubbed(fixture).fixture.recorded_compactions
    assert compaction.state is not None
    kept = compaction.state[1]
    assert not isinstance(kept, int)
    assert "not like" not in kept.text
    assert "the queue" in kept.text


def test_a_bank_follows_its_conversation() -> None:
    fixture = conversation(
        user("export API_KEY=q7-Zx81-kLmn"),
        assistant(""),
        user("in /home/mmuster/x\nUSER=mmuster"),
        assistant("yes"),
        name="mmuster",
    )
    bank = ProbeBank.model_validate(
        {
            "fixture": "mmuster",
            "probes": [
                {
                    "id": "p",
                    "type": "recall",
                    "question": "Which key did mmuster use?",
                    "expected_facts": [
                        {"fact": "q7-Zx81-kLmn", "evidence": [0, 1]},
                        {"fact": "/home/mmuster/x", "evidence": [2]},
                    ],
                    "constraint": {"text": "none", "evidence": [3]},
                    "cut": 4,
                }
            ],
        }
    )
    done = scrubbed(fixture)
    made = scrub_bank(bank, done)
    key, path = made.probes[0].expected_facts
    assert made.fixture == done.fixture.name == USER
    assert key.fact in done.fixture.messages[0].text
    assert path.fact == f"/home/{USER}/x"
    assert (key.evidence, path.evidence, made.probes[0].cut) == ([0], [1], 3)
    assert made.probes[0].constraint is not None
    assert made.probes[0].constraint.evidence == [2]
    assert USER in made.probes[0].question
    assert audit(made, done.settings, done) == []
    with pytest.raises(DataError, match="the bank belongs to 'other'"):
        scrub_bank(bank.model_copy(update={"fixture": "other"}), done)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>\nplan\n</think>\nAnswer.", "Answer."),
        ("The `<think>` tag.\n```\n<think>x</think>\n```", None),
    ],
)
def test_reasoning_goes_from_the_assistant_alone(text: str, left: str | None) -> None:
    fixture = conversation(user(text), assistant(text), assistant("end"))
    done = scrubbed(fixture, only=["reasoning"])
    assert done.fixture.messages[0].text == text
    assert done.fixture.messages[1].text == (text if left is None else left)


def test_publish_takes_images_the_prompt_and_long_outputs() -> None:
    long = "x" * 5000
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    fixture = conversation(
        system("I am the prompt of a company."),
        {"role": "user", "content": [{"type": "text", "text": long}, image]},
        assistant("", call("c")),
        result("c", long),
    )
    done = scrubbed(fixture, profile="publish").fixture
    assert done.messages[0].text == generic_prompt()
    assert done.messages[1].text == f"{long}\n[image removed]"
    output = done.messages[3].text
    assert len(output) <= MAX_OUTPUT_CHARACTERS
    kept = output.count("x")
    assert output.endswith(f"[{5000 - kept} of 5000 characters left out]")
    assert scrubbed(done, profile="publish").fixture == done
    whole = scrubbed(fixture, profile="publish", skip=["truncation"]).fixture
    assert whole.messages[3].text == long


def test_what_ran_is_recorded_once() -> None:
    fixture = conversation(user("x"), source={"origin": "pi"})
    first = scrubbed(fixture, only=["emails"]).fixture
    second = scrubbed(first, only=["secrets", "emails"]).fixture
    assert first.source is not None
    assert second.source is not None
    words = f"english-words {version('english-words')}"
    assert first.source.scrubber == f"compression_eval 9 (default, {words})"
    assert (first.source.origin, first.source.scrubbing) == ("pi", ["emails"])
    assert second.source.scrubbing == ["emails", "secrets"]
    rules = f"kingfisher-secret-scanner {version('kingfisher-secret-scanner')}"
    assert second.source.scrubber == f"compression_eval 9 (default, {rules}, {words})"


def test_a_field_of_another_model_or_a_text_that_begins_as_an_image_is_no_way_round() -> None:
    token = "ghp_" + "aB3dE5gH7jK9mN1pQ2rS4tU6vW8xY0zA1bC2"
    hidden = {"token": token, "id": ["ann.lee@ferrant.com"]}
    names = ["role", "type", "tool_call_id", "language", "kind", "trigger", "schema_version"]
    names += ["scrubber", "scrubbing", "importer", "recorder", "id", "messages"]

    def others(*own: str) -> dict[str, Any]:
        return {name: hidden for name in names if name not in own}

    part = {"type": "text", "text": f"data:image/ {token}", **others("type")}
    asked = {**call("c1"), **others("id", "type")}
    fixture = conversation(
        {"role": "user", "content": [part], **others("role", "tool_call_id")},
        {**assistant("Yes."), "tool_calls": [asked], **others("role", "tool_call_id")},
        {**result("c1", f"data:image/png;base64,AAAA {token}"), **others("role", "tool_call_id")},
        recorded_compactions=[{"cut": 1, "trigger": token, **others("kind", "trigger")}],
        source={"origin": "pi", "importer": "rules 1", **others(*names[7:11])},
        **others("language", "schema_version", "messages"),
    )
    settings = ScrubSettings.of()
    found = [finding.where for finding in audit(fixture, settings)]
    for where in ("trigger.token", "messages[0].recorder.id[0]", "source.kind.token"):
        assert where in found
    text = fixture_text(scrubbed(fixture).fixture)
    assert token not in text
    assert "ferrant" not in text
    assert '"importer": "rules 1"' in text


def test_a_broken_json_or_a_half_surrogate_stops_nothing() -> None:
    text = '{"a": "\\ud800/home/mmuster/x", "b": [1, 2}'
    nested = '{"a": "\\ud800 /home/mmuster/x"}'
    assert "mmuster" not in cleaned(text)
    assert json.loads(cleaned(nested))["a"] == f"\ud800 /home/{USER}/x"


@pytest.mark.parametrize("pattern", ["a@", "1.", "/home", "a-b."])
def test_time_grows_with_the_text_only(pattern: str) -> None:
    text = pattern * (200_000 // len(pattern))
    started = time.process_time()
    cleaned(text)
    assert time.process_time() - started < 5
