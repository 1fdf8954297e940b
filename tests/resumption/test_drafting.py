"""Drafts of continuation tasks, made from a session and finished by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from compression_eval.cli import main
from tests.e2e import small

MESSAGE = """\
Now: !!python/object/apply:os.system ["touch pwned"]
---
# not a comment: give `retry_limit` to $(touch pwned) and drop 'old.py' \u2028 \u202e "今"."""
BEFORE = "STORE = 'sessions-a'\nRETRIES = 7\n"
AFTER = BEFORE + "def retry_limit():\n    return RETRIES\n"
TESTS = "python -m unittest tests.test_session"


def turn(number: int, said: str, *results: tuple[dict[str, Any], str]) -> list[dict[str, Any]]:
    """Return a user's message and one reply with calls and their results."""
    calls = [{**made, "id": f"t{number}-{at}"} for at, (made, _) in enumerate(results)]
    return [
        {"role": "user", "content": said},
        {"role": "assistant", "content": "So:", **({"tool_calls": calls} if calls else {})},
        *(
            {"role": "tool", "tool_call_id": made["id"], "content": text}
            for made, (_, text) in zip(calls, results, strict=True)
        ),
    ]


def shell(command: str) -> dict[str, Any]:
    return small.call("", "bash", command=command)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session in which the second message leads to edits, the fourth to nothing."""
    edit = small.call(
        "", "edit_file", path="/repo/auth/session.py", old_string="7\n", new_string=AFTER[-45:]
    )
    messages = [
        {"role": "system", "content": "You are a coding agent."},
        *turn(
            0,
            "Logins fail; never touch vendor/.",
            (small.call("", "read_file", path="/repo/auth/session.py"), BEFORE),
            (shell(f"cd /repo && {TESTS}"), "FAILED (errors=1)\n[exit code 1]"),
            (shell("cd /repo && pytest -q tests/test_old.py"), "3 passed in 0.1s"),
        ),
        *turn(
            1,
            MESSAGE,
            (edit, "Edited /repo/auth/session.py"),
            (small.call("", "write_file", path="/repo/docs/a b.md", content="x\n"), "Created"),
            (shell("cd /repo && rm old.py && touch pwned"), ""),
            (shell(f"cd /repo && {TESTS} 2>&1 | tail -3"), "Ran 2 tests in 0.1s\n\nOK"),
            (shell("cd /repo/web && npm run test:unit -- --ci"), "Tests: 1 failed, 4 passed"),
            (shell("cd /repo && pytest -q tests/test_old.py"), "3 passed in 0.1s"),
            (shell("pip install pytest; grep -r pytest ."), "ok"),
        ),
        *turn(2, "Thanks, that is all."),
    ]
    path = tmp_path / "fixtures" / "tiny.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"name": "tiny", "messages": messages}), encoding="utf-8")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(item) for item in arguments])


def test_a_draft_is_refused_until_it_is_finished_and_then_proven(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = session.parent.parent / "continuations"
    monkeypatch.chdir(session.parent)
    file = folder / "tiny.yaml"
    found = run("continuations", "draft", session, "-o", file)
    assert found.exit_code == 0, found.output
    drafted = yaml.safe_load(file.read_text(encoding="utf-8"))
    (task,) = drafted["tasks"]
    assert (task["cut"], task["message"]) == (6, MESSAGE)
    assert task["draft"]["said_before"] == [1]
    assert task["draft"]["changed"] == {
        "auth/session.py": "modified",
        "docs/a b.md": "created",
        "old.py": "deleted",
        "pwned": "created",
    }
    outcomes = {
        seen["command"]: (seen.get("before"), seen["outcome"]) for seen in task["draft"]["tests"]
    }
    assert outcomes == {
        TESTS: ("failed", "passed"),
        "npm run test:unit -- --ci": (None, "failed"),
        "pytest -q tests/test_old.py": ("passed", "passed"),
    }
    assert [check["run"] for check in task["checks"]] == [
        "grep -qw -e retry_limit -- auth/session.py",
        "test -f 'docs/a b.md'",
        "test ! -e old.py",
        "test -f pwned",
        TESTS,
    ]

    refused = run("fixtures", "check", session, "--continuations")
    assert refused.exit_code == 1
    (line,) = [line for line in refused.output.splitlines() if "tasks[0].draft" in line]
    assert "an unfinished draft" in line

    code = folder / "code"
    suite = "import unittest\nfrom auth.session import retry_limit\n"
    for name, text in (
        ("auth/session.py", BEFORE),
        ("old.py", ""),
        ("tests/test_session.py", f"{suite}class T(unittest.TestCase):\n    def test(s): pass\n"),
    ):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text(text, encoding="utf-8")
    del task["draft"]
    write = f"cat > auth/session.py <<'END'\n{AFTER}END\nmkdir docs; touch 'docs/a b.md' pwned"
    task |= {"message": "Give `retry_limit` a function.", "solution": f"{write}; rm old.py"}
    task["codebase"] = "code"
    file.write_text(yaml.safe_dump(drafted), encoding="utf-8")
    proven = run("fixtures", "check", session, "--continuations")
    assert proven.exit_code == 0, proven.output
    assert not list(session.parent.parent.rglob("pwned")), "nothing of a conversation is run"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--cut", "9"], "--cut 9: "),
        (["--cut", "15"], "has such at 6"),
        (["--force"], ""),
        ([], "is there already; --force overwrites it"),
    ],
)
def test_what_cannot_be_drafted_is_said(arguments: list[str], said: str, session: Path) -> None:
    file = session.with_suffix(".yaml")
    file.write_text("mine\n")
    given = ["--force", *arguments] if said.startswith(("--", "has")) else arguments
    found = run("continuations", "draft", session, "--out", file, *given)
    assert (found.exit_code == 0) == (not said), found.output
    assert said in found.output
    assert (file.read_text(encoding="utf-8") == "mine\n") == bool(said)


@pytest.mark.parametrize(
    ("calls", "checks", "unsure"),
    [
        (["cd frontend", "npm test"], [], ["npm test"]),
        (["cd web && npm test", "cd web && npm test"], ["cd web && npm test"], []),
        (["cd api && ls && cd .. && cd web && pytest -q"], ["cd web && pytest -q"], []),
        (["cd $A && pytest", "cd /elsewhere && pytest"], [], ["pytest"]),
        (["uv run --with pytest tool", "pytest --version", "make -j 2 test --help"], [], []),
    ],
)
def test_a_test_is_checked_in_the_folder_in_which_it_ran(
    calls: list[str], checks: list[str], unsure: list[str], tmp_path: Path
) -> None:
    messages = [
        *turn(0, "Look around.", (shell("cd /repo && ls"), "a\nb\n")),
        *turn(1, "Now test it.", *((shell(command), "3 passed") for command in calls)),
    ]
    path, out = tmp_path / "tiny.json", tmp_path / "tiny.yaml"
    path.write_text(json.dumps({"name": "tiny", "messages": messages}), encoding="utf-8")
    found = run("continuations", "draft", path, "--out", out, "--cut", "3", "--cut", "3")
    if not checks and not unsure:
        assert "has such at no place" in found.output
        return
    assert "1 of 1: before message 3\n" in found.output
    (task,) = yaml.safe_load(out.read_text(encoding="utf-8"))["tasks"]
    assert [check["run"] for check in task["checks"]] == checks
    missing = task["draft"]["missing"]
    assert [item for item in missing if "folder" in item] == [f"folder of {it}" for it in unsure]
