"""What every fixture needs, whatever format it came from."""

import pytest

from compression_eval.conversations.building import build
from compression_eval.conversations.drafts import (
    NO_CALL,
    Compaction,
    Conversation,
    Draft,
    DraftCall,
    Image,
)
from compression_eval.errors import DataError
from compression_eval.fixtures.models import NO_RESULT, ImagePart, Message


def _conversation(*drafts: Draft, session: str = "") -> Conversation:
    """Return a conversation in which each draft came from a line of its own."""
    conversation = Conversation("test", "Test 1", session)
    for number, draft in enumerate(drafts, 1):
        conversation.say(conversation.enter(f"line {number}", draft.role), draft)
    return conversation


def _call(identifier: str, arguments: str = "{}") -> Draft:
    return Draft("assistant", calls=[DraftCall(identifier, "Bash", arguments)])


def calling(*ids: str, text: str = "") -> Draft:
    return Draft("assistant", [text], [DraftCall(one, "bash", "{}") for one in ids])


def result(identifier: str, text: str = "done") -> Draft:
    return Draft("tool", [text], call_id=identifier)


def test_what_the_user_typed_while_a_tool_ran_comes_behind_the_result() -> None:
    built = build(
        _conversation(
            Draft("user", ["go"]),
            _call("c1"),
            Draft("user", ["stop at ten"]),
            result("c1"),
        )
    )
    assert [message.text for message in built.fixture.messages] == ["go", "", "done", "stop at ten"]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    built = build(_conversation(Draft("user", ["go"]), _call("c1"), Draft("assistant", ["oh"])))
    assert built.fixture.messages[2].text == NO_RESULT
    assert built.fixture.messages[2].tool_call_id == "c1"
    assert built.fixture.source is not None
    assert built.fixture.source.caveats == ["1 tool calls have no recorded result"]


def test_a_result_without_its_call_and_an_empty_turn_are_left_out_by_name() -> None:
    built = build(
        _conversation(Draft("user", ["go"]), result("x", "stray"), Draft("assistant", [" "]))
    )
    assert len(built.fixture.messages) == 1
    assert [(one.what, one.reason, one.first) for one in built.left_out] == [
        ("tool", NO_CALL, ("line 2",)),
        ("assistant", "an empty assistant turn", ("line 3",)),
    ]


def test_an_id_that_the_file_repeats_is_told_apart() -> None:
    built = build(
        _conversation(
            Draft("user", ["go"]),
            _call("c"),
            result("c", "one"),
            _call("c"),
            result("c", "two"),
        )
    )
    assert [call.id for m in built.fixture.messages for call in m.calls] == ["c", "c-2"]
    assert built.fixture.messages[4].tool_call_id == "c-2"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", {}),
        ('{"a": 1}', {"a": 1}),
        ("*** Begin Patch", {"input": "*** Begin Patch"}),
        ('{"a":' * 600 + "1" + "}" * 600, {"input": '{"a":' * 600 + "1" + "}" * 600}),
    ],
)
def test_arguments_become_an_object_whatever_the_model_wrote(
    raw: str, expected: dict[str, object]
) -> None:
    built = build(_conversation(Draft("user", ["go"]), _call("c", raw), result("c")))
    assert built.fixture.messages[1].calls[0].function.parsed() == expected


def test_an_image_becomes_a_description_unless_it_is_asked_for() -> None:
    image = Image("image/png", "data:image/png;base64,AAAA")
    draft = Draft("user", ["look", image])
    described = build(_conversation(draft)).fixture.messages[0]
    assert described.content == "look\n[image: image/png, 3 bytes]"
    kept = build(_conversation(draft), images="keep").fixture.messages[0]
    assert isinstance(kept.content, list)
    assert isinstance(kept.content[1], ImagePart)
    assert kept.content[1].image_url.url == "data:image/png;base64,AAAA"


def test_half_a_surrogate_pair_becomes_a_character_that_can_be_written() -> None:
    built = build(_conversation(Draft("user", ["a\ud83d b \U0001f600"])))
    assert built.fixture.messages[0].text == "a\ufffd b \U0001f600"


def test_a_compaction_becomes_a_cut_behind_open_results_and_a_state() -> None:
    ask, call = Draft("user", ["go"]), _call("c1")
    done, later = result("c1"), Draft("assistant", ["next"])
    conversation = _conversation(ask, call, done, later)
    summary = Draft("user", ["Summary: went"])
    conversation.compactions.append(
        Compaction(after=call, summary="Summary: went", state=[summary, call, done, later])
    )
    (found,) = build(conversation).fixture.recorded_compactions
    assert found.cut == 3
    assert found.state is not None
    assert [item if isinstance(item, int) else item.text for item in found.state] == [
        "Summary: went",
        1,
        2,
    ]


def test_a_state_never_parts_a_call_from_its_result() -> None:
    ask, call = Draft("user", ["go"]), _call("c1")
    done = result("c1")
    conversation = _conversation(ask, call, done)
    conversation.compactions.append(Compaction(after=done, state=[ask, done]))
    fixture = build(conversation).fixture
    assert fixture.recorded_compactions[0].state == [0]
    assert fixture.source is not None
    assert "kept tail" in fixture.source.caveats[0]


def test_the_name_comes_from_the_session_or_the_content_and_never_from_elsewhere() -> None:
    named = _conversation(Draft("user", ["go"]), session="0c9e24a4-9214-4e11-8f00-00ab12cd34ef")
    named.part = "Agent 3/f2"
    assert build(named).fixture.name == "test-00ab12cd34ef-agent-3-f2"
    first, second = (build(_conversation(Draft("user", ["go"]), session="Jo")) for _ in range(2))
    assert first.fixture.name == second.fixture.name
    assert "jo" not in first.fixture.name.split("-")


def test_a_conversation_in_which_no_user_speaks_is_refused() -> None:
    with pytest.raises(DataError, match="no user message"):
        build(_conversation(Draft("assistant", ["hello"])))


def state_of(history: list[Draft], state: list[Draft]) -> list[int | Message]:
    conversation = Conversation("test", "test", drafts=history)
    conversation.compactions.append(Compaction(after=history[-1], state=state))
    (compaction,) = build(conversation).fixture.recorded_compactions
    assert compaction.state is not None
    return compaction.state


def ids(state: list[int | Message]) -> list[list[str] | str | int | None]:
    return [
        item if isinstance(item, int) else [c.id for c in item.calls] or item.tool_call_id
        for item in state
    ]


def test_a_turn_made_anew_takes_its_results_with_it() -> None:
    first, second = result("c1"), result("c2")
    history = [Draft("user", ["go"]), calling("c1", "c2"), first, second]
    state = state_of(history, [calling("c1", "c2", text="summary, then"), first, second])
    assert ids(state) == [["c1", "c2"], "c1", "c2"]


def test_a_changed_result_of_a_kept_turn_answers_its_call() -> None:
    turn, other = calling("c1", "c2"), result("c2")
    history = [Draft("user", ["go"]), turn, result("c1"), other]
    state = state_of(history, [turn, result("c1", "cleared"), other])
    assert ids(state) == [1, "c1", 3]


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [
        (["first", "second"], "second"),
        ([None, "second"], "second"),
        (["first", None], "first"),
    ],
)
def test_of_compactions_at_one_cut_the_last_with_a_state_is_kept(
    kinds: list[str | None], kept: str
) -> None:
    history = [Draft("user", ["go"]), Draft("assistant", ["done"])]
    conversation = Conversation("agent", drafts=history)
    for number, summary in enumerate(kinds):
        left = [Draft("user", [summary])] if summary else None
        conversation.compactions.append(
            Compaction(history[-1], summary=summary, state=left, tokens_before=9_000 - number)
        )
    (compaction,) = build(conversation).fixture.recorded_compactions
    assert (compaction.cut, compaction.summary) == (2, kept)
    assert compaction.tokens_before == 9_000, "the size before the first of them"
