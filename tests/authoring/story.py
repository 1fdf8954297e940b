"""A small session with everything that can be asked about without a model."""

from pathlib import Path
from typing import Any

import anyio

from compression_eval.authoring.history import History, histories
from compression_eval.fixtures.models import Fixture
from tests.fixtures.building import (
    Json,
    assistant,
    call,
    result,
    system,
    user,
    write,
)

CUT = 22
TAIL = 22
"""Tokens of tail with which the last two messages before the cut are kept."""

ASKED = "Should `parse_rows` keep rows without a delivery note?"
PYTEST = "python -m pytest tests/test_rows.py"


def messages() -> list[Json]:
    """Return the session; the kept tail says nothing that matters."""
    options = [{"label": "Keep and flag them"}, {"label": "Reject the file"}]
    return [
        system(),
        user(
            "Ticket FER-512 is yours: the importer drops rows of the partner export. "
            "The nightly job reads data/export-0214.csv and nothing else."
        ),
        assistant("I read the importer.", call("c1", "read_file", path="importer/rows.py")),
        result("c1", "     1\tdef parse_rows(path):\n     2\t    row_limit = 30"),
        assistant(
            "One question first.",
            call("c2", "AskUserQuestion", questions=[{"question": ASKED, "options": options}]),
        ),
        result("c2", f'The user answered: "{ASKED}"="Keep and flag them"'),
        assistant("A first step.", edit("c3", "row_limit = 30", "row_limit = 45")),
        result("c3", "Edited importer/rows.py"),
        assistant("Now the tests.", call("c4", command=PYTEST)),
        result(
            "c4",
            "Traceback (most recent call last):\n  ...\nKeyError: 'delivery_note'\n"
            "2 failed, 11 passed in 0.2s\nexit code: 1",
        ),
        assistant("Higher still.", edit("c5", "row_limit = 45", "row_limit = 600")),
        result("c5", "Edited importer/rows.py"),
        assistant(
            "A test of its own.",
            call(
                "c6",
                "write_file",
                path="tests/test_notes.py",
                content="class DeliveryNoteTest:\n    pass\n",
            ),
        ),
        result("c6", "Created tests/test_notes.py"),
        assistant("Again.", call("c7", command=PYTEST)),
        result("c7", "1 failed, 13 passed in 0.2s\nexit code: 1"),
        assistant("", call("c8", command="git commit -am 'Keep rows without a note'")),
        result("c8", "[main 4f3c2a1] Keep rows without a note\n 2 files changed"),
        assistant(
            "The list:",
            call(
                "c9",
                "TodoWrite",
                todos=[
                    {"content": "Raise the row limit", "status": "completed"},
                    {"content": "Flag rows in the weekly report", "status": "in_progress"},
                    {"content": "Tell the partner desk", "status": "pending"},
                ],
            ),
        ),
        result("c9", "The list was saved."),
        user("Good so far."),
        assistant("Thank you."),
        assistant(
            "I run the nightly job once.",
            call("c10", command="python tools/nightly.py data/export-0214.csv --ticket FER-512"),
        ),
        result("c10", "done: data/report-0214.csv written"),
        assistant("", call("c11", "read_file", path="data/report-0214.csv")),
        result("c11", "1 row flagged"),
    ]


def edit(identifier: str, old: str, new: str) -> Json:
    return call(identifier, "edit_file", path="importer/rows.py", old_string=old, new_string=new)


def fixture_data(**fields: Any) -> Json:
    return {"name": "story", "messages": messages(), "cuts": [CUT], **fields}


def story_file(folder: Path, **fields: Any) -> Path:
    return write(folder / "story.json", fixture_data(**fields))


def history(tail_tokens: int = TAIL, cut: int = CUT, **fields: Any) -> History:
    fixture = Fixture.model_validate(fixture_data(**fields))
    (only,) = anyio.run(histories, fixture, [cut], tail_tokens)
    return only
