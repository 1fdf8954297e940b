"""Claude Code's summary, and the files it attaches again."""

import json
from typing import Any

import pytest

from compression_eval.compressors.state import State
from compression_eval.compressors.tokens import token_counter
from compression_eval.fixtures.models import Fixture
from tests.compressors.arms import compressed, session

PAD = "word " * 400

KEY = "compression_eval_claude_code"


def attached(state: State) -> dict[str, str]:
    """Paths and contents of the attached files, in their order."""
    result = {}
    for message in state.messages:
        if message.text.startswith("File "):
            heading, text = message.text.split("\n\n", 1)
            result[json.loads(heading.split(",", 1)[0].removeprefix("File "))] = text
    return result


def editing() -> Fixture:
    return session(
        f"Look around. {PAD}",
        ("", "read_file", {"path": "a.py"}, "    1  one\n    2  two\n    3  three"),
        ("", "read_file", {"path": "b.py"}, "    1  alpha"),
        ("", "edit_file", {"path": "a.py", "old": "two", "new": "TWO"}, "Edited a.py"),
        "And now the rest.",
        ("", "write_file", {"path": "c.py", "content": "fresh\n"}, "Created c.py (1 line)"),
        ("", "bash", {"command": "cat b.py"}, PAD),
        ("", "read_file", {"path": "b.py"}, "    1  alpha\n    2  beta"),
    )


def test_the_state_is_summary_and_files_in_use_last_first() -> None:
    reply = "<analysis>private thoughts</analysis>\n<summary>\n1. Request: all\n</summary>"
    state, asked = compressed(editing(), "claude-code", reply=lambda _: reply)
    assert state.status == "ok", state.failure
    assert [message.role for message in state.messages] == [
        "system",
        "user",
        "user",
        "user",
        "user",
    ]
    carrier = state.messages[1].text
    assert "1. Request: all" in carrier
    assert "private" not in carrier
    assert "<summary>" not in carrier
    assert attached(state) == {
        "b.py": "alpha\nbeta",
        "c.py": "fresh\n",
        "a.py": "one\nTWO\nthree",
    }
    (request,) = asked
    assert [message.role for message in request[:2]] == ["system", "user"]
    assert len(request) == len(editing().messages) + 1
    assert request[-1].text.count("\n1. ") == 1
    assert [f"\n{number}. " in request[-1].text for number in range(1, 11)] == [True] * 9 + [False]


def test_limits_of_what_is_attached() -> None:
    state, _ = compressed(editing(), "claude-code", {"max_files": 2})
    assert list(attached(state)) == ["b.py", "c.py"]
    state, _ = compressed(editing(), "claude-code", {"max_files": 0})
    assert attached(state) == {}
    long = session(
        f"Go. {PAD}",
        ("", "write_file", {"path": "old.py", "content": "o " * 500}, "Created"),
        ("", "write_file", {"path": "new.py", "content": "n " * 500}, "Created"),
    )
    state, _ = compressed(long, "claude-code", {"file_tokens": 300, "files_tokens": 400})
    count = token_counter().count
    sizes = {path: count(text) for path, text in attached(state).items()}
    assert list(sizes) == ["new.py", "old.py"]
    assert 250 < sizes["new.py"] <= 300
    assert sum(sizes.values()) <= 400
    assert "characters left out" in attached(state)["new.py"]
    assert "it\nmay have more" in state.messages[2].text


def test_the_next_cycle_reads_the_earlier_summary_and_knows_the_earlier_files() -> None:
    fixture = session(
        f"Look around. {PAD}",
        ("", "read_file", {"path": "a.py"}, "one\ntwo"),
        ("", "read_file", {"path": "b.py"}, "alpha"),
        f"And on. {PAD}",
        ("", "edit_file", {"path": "a.py", "old": "two", "new": "TWO"}, "Edited a.py"),
    )
    replies = iter(["first summary", "second summary"])
    state, asked = compressed(
        fixture, "claude-code", reply=lambda _: next(replies), cuts=(6, len(fixture.messages))
    )
    assert state.status == "ok", state.failure
    said = "\n".join(message.text for message in asked[1])
    assert "first summary" in said
    assert "Look around" not in said
    assert "first summary" not in "\n".join(message.text for message in state.messages)
    assert attached(state) == {"a.py": "one\nTWO", "b.py": "alpha"}


@pytest.mark.parametrize(
    ("reply", "summary"),
    [
        ("plain", "plain"),
        ("<summary>x <summary> y</summary> z</summary>!", "x <summary> y</summary> z"),
        ("<analysis>\n<summary>no</summary></analysis><summary>yes</summary>", "yes"),
    ],
)
def test_the_part_of_a_reply_that_is_the_summary(reply: str, summary: str) -> None:
    state, _ = compressed(editing(), "claude-code", reply=lambda _: reply)
    (metadata,) = [m.metadata for m in state.messages if KEY in (m.metadata or {})]
    assert metadata == {KEY: summary}


@pytest.mark.parametrize(
    ("tool", "arguments", "result", "known"),
    [
        ("Edit", {"file_path": "f", "old_string": "a", "new_string": ""}, "ok", "\nb1\nb2"),
        ("Read", {"file_path": "f", "offset": 1, "limit": 1}, "1\tb1", "a\nb1\nb2"),
        ("bash", {"command": "cat f", "path": "f"}, "other", "a\nb1\nb2"),
        ("read_file", {"path": "f"}, "f: no such file", "a\nb1\nb2"),
        ("edit_file", {"path": "f", "old": "a", "new": "c"}, "f: was found 2 times", "a\nb1\nb2"),
    ],
)
def test_what_is_known_of_a_file_after_a_call(
    tool: str, arguments: dict[str, Any], result: str, known: str
) -> None:
    fixture = session(
        f"Go. {PAD}",
        ("", "write_file", {"path": "f", "content": "a\nb1\nb2"}, "Created f"),
        ("", tool, arguments, result),
    )
    state, _ = compressed(fixture, "claude-code")
    assert attached(state) == {"f": known}


@pytest.mark.parametrize(
    ("command", "may_change"),
    [
        ("sed -i s/a/b/ src/f.py", True),
        ('cd "$there" && sed -i s/a/b/ src/f.py', True),
        ("black .", True),
        ("python - <<'E'\nimport sys\nopen(sys.argv[1], 'w').write('x')\nE", True),
        ("cat src/f.py", False),
        ("sed -i s/a/b/ src/g.py", False),
        ("black --check .", False),
    ],
)
def test_content_that_a_later_command_may_have_changed_is_headed_so(
    command: str, may_change: bool
) -> None:
    turns: list[Any] = [
        f"Go. {PAD}",
        ("", "write_file", {"path": "/w/src/g.py", "content": "g = 1"}, "Created"),
        ("", "write_file", {"path": "/w/src/f.py", "content": "a = 1"}, "Created"),
        ("", "bash", {"command": command, "cwd": "/w"}, "ok"),
        f"And on. {PAD}",
    ]
    again = ("", "read_file", {"path": "/w/src/f.py"}, "b = 1")
    more = f"And more. {PAD}"
    for added, cuts, headed in (
        ([], (), may_change),
        (["More.", more], (9, 11), may_change),  # it goes from one compression to the next
        ([again, more], (9, 12), False),
    ):
        fixture = session(*turns, *added)
        state, _ = compressed(fixture, "claude-code", cuts=cuts)
        assert state.status == "ok", state.failure
        (text,) = [m.text for m in state.messages if m.text.startswith('File "/w/src/f.py"')]
        heading = " ".join(text.partition("\n\n")[0].split())
        assert ("may have changed it" in heading) is headed
