"""What replaces removed messages, so that they can be read again by their numbers."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.event import ModelEvent
from inspect_ai.log import resolve_sample_attachments
from inspect_ai.model import ChatMessage

from compression_eval import PointersCompaction, ReferencesCompaction
from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.cuts import chain
from compression_eval.fixtures.models import Fixture
from tests.compressors.agents import THRESHOLD, agent_run
from tests.compressors.arms import compressed, messages_of, session
from tests.compressors.conftest import conversation_fixture

LINE = re.compile(r"- (\d+)(?:-(\d+))? (.*), ([\d,]+) tokens")


def references(messages: Sequence[ChatMessage]) -> list[tuple[int, int, str, int]]:
    """First and last number, what is said, and tokens of each line."""
    (text,) = [m.text for m in messages if "[References" in m.text]
    lines = [line for line in text.splitlines() if line.startswith("- ")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return [(int(f[1]), int(f[2] or f[1]), f[3], int(f[4].replace(",", ""))) for f in found if f]


def pointed(state: State) -> list[str]:
    """The lines that say where to look."""
    (text,) = [m.text for m in state.messages if m.text.startswith("[Summary")]
    return [line for line in text.partition("## Where to look")[2].splitlines() if line[:1] == "-"]


def test_a_reference_says_what_was_removed() -> None:
    fixture = session(
        'Mend "login".\nIt fails.',
        ("I look.", "read_file", {"path": "src/login.py"}, "def login(): ..." * 40),
        ("", "bash", {"command": ["pytest", "-q"]}, "1 failed"),
        ("", "sea\n- 9rch", {"limit": 3, "query": "x" * 200}, "none"),
        "Go on.",
    )
    state, asked = compressed(fixture, "references", {"tail_tokens": 1})
    assert (state.failure, asked) == ("", [])
    sizes = [token_counter().message(message) for message in messages_of(fixture)]
    assert references(state.messages) == [
        (1, 1, 'user: "Mend \\"login\\". It fails."', sizes[1]),
        (2, 3, 'assistant, tool: read_file "src/login.py"', sum(sizes[2:4])),
        (4, 5, 'assistant, tool: bash "pytest" "-q"', sum(sizes[4:6])),
        (6, 7, f'assistant, tool: sea-9rch "{"x" * 80}…"', sum(sizes[6:8])),
        (8, 8, 'user: "Go on."', sizes[8]),
    ]


@pytest.mark.parametrize("arguments", [{}, {"target_tokens": 600}, {"head_tokens": 60}])
def test_numbers_stay_those_of_the_original_conversation(arguments: dict[str, Any]) -> None:
    fixture = conversation_fixture(turns=40)
    cuts = chain(fixture, len(fixture.messages), 3)
    given = {"tail_tokens": 200, **arguments}
    state, _ = compressed(fixture, "references", given, cuts=cuts)
    assert state.status == "ok", state.failure
    assert state.state_tokens <= arguments.get("target_tokens", 10**6)
    lines = references(state.messages)
    messages = messages_of(fixture)
    for first, last, what, tokens in lines:
        assert tokens == token_counter().messages(messages[first : last + 1])
        if command := re.search(r'bash "(.*)"', what):
            assert fixture.messages[first].calls[0].function.parsed() == {"command": command[1]}
    kept = [int(str(m.id)[1:]) for m in state.messages if m.id and re.fullmatch(r"m\d+", m.id)]
    covered = [number for first, last, *_ in lines for number in range(first, last + 1)]
    assert len(covered) == len(set(covered)), "nothing is referred to twice"
    assert set(covered) | set(kept) == set(range(len(messages)))


def test_over_the_budget_the_oldest_become_one() -> None:
    fixture = conversation_fixture(turns=24)
    whole, short = (
        references(
            compressed(fixture, "references", {"tail_tokens": 100, "reference_tokens": budget})[
                0
            ].messages
        )
        for budget in (10_000, 200)
    )
    merged, *rest = short
    assert rest == whole[-len(rest) :]
    assert merged == (1, rest[0][0] - 1, merged[2], sum(line[3] for line in whole[: -len(rest)]))
    assert re.fullmatch(r"\d+ messages \(calls: bash \d+\)", merged[2])
    state, _ = compressed(fixture, "references", {"tail_tokens": 100, "reference_tokens": 1})
    assert len(references(state.messages)) == 1, "one line always stays"


def test_in_an_agent_they_count_what_it_said_and_did(tmp_path: Path) -> None:
    strategy = ReferencesCompaction(tail_tokens=300, reference_tokens=1_000, threshold=THRESHOLD)
    log = agent_run(strategy, tmp_path)
    assert log.status == "success", log.error
    sample = resolve_sample_attachments((log.samples or [])[0], "full")
    events = [event for event in sample.events if isinstance(event, ModelEvent)]
    lines = references(events[-1].input)
    # Message 0 is the system prompt, 1 the task.
    assert [(first, last) for first, last, *_ in lines] == [
        (1, 1),
        *((first, first + 1) for first in range(2, 2 * len(lines), 2)),
    ]
    assert len(lines) > 8, "it was compressed several times"
    assert all(what == "assistant, tool: work" for *_, what, _ in lines[1:])


REPLY = """<summary>
## Goal and rules
Mend the import.
</summary>
<pointers>
- file src/a.py: 3, 5-7
- decision keep it: no retries: messages 8 and 9
- failed attempt a wild one: 4000, 5
- file src/b.py: 900-2000000000
- file src/a.py: 2
no pointer at all
- without a number: none
</pointers>"""


def test_numbers_that_no_message_has_are_dropped(fixture: Fixture) -> None:
    reply = REPLY.replace("4000", "4" * 5_000)  # more digits than Python takes for a number
    state, asked = compressed(fixture, "pointers", {"tail_tokens": 120}, lambda _: reply)
    assert state.status == "ok", state.failure
    assert pointed(state) == [
        "- file src/a.py: 2, 3, 5, 6, 7",
        "- decision keep it: no retries: 8, 9",
        "- failed attempt a wild one: 5",
    ]
    (message,) = [m for m in state.messages if m.text.startswith("[Summary")]
    assert "Mend the import." in message.text
    assert "<pointers>" not in message.text
    assert (message.metadata or {})[PointersCompaction.key]["refused"] == 2
    shown = [line for line in asked[0][1].text.splitlines() if '"role"' in line]
    assert shown[0].startswith('{"index": 1, '), "message 0 is the system prompt"


def test_a_later_summary_is_given_the_pointers_and_the_numbers_go_on() -> None:
    fixture = conversation_fixture(turns=24)
    cuts = chain(fixture, len(fixture.messages), 2)
    state, asked = compressed(
        fixture, "pointers", {"tail_tokens": 200}, lambda _: REPLY.replace("4000", "40"), cuts
    )
    assert state.status == "ok", state.failure
    first, second = ("\n".join(m.text for m in request) for request in asked)
    assert '"earlier_pointers": ["file src/a.py: 2, 3, 5, 6, 7"' in second
    numbers = [
        [int(n) for n in re.findall(r'^{"index": (\d+), "role"', text, re.MULTILINE)]
        for text in (first, second)
    ]
    assert numbers[0] + numbers[1] == list(range(1, numbers[1][-1] + 1))
    assert "failed attempt a wild one: 5, 40" in "\n".join(pointed(state))


def test_a_target_holds_for_summary_and_pointers() -> None:
    many = "\n".join(f"- file src/{number}.py: {number}" for number in range(60))
    reply = f"<summary>\n{'words ' * 2_000}\n</summary>\n<pointers>\n{many}\n</pointers>"
    state, _ = compressed(
        conversation_fixture(turns=24), "pointers", {"target_tokens": 900}, lambda _: reply
    )
    assert state.status == "ok", state.failure
    assert state.state_tokens <= 900
    assert pointed(state)
