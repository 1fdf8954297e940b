import json
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.conversations.scrubbing import Pseudonyms, commands, scrub, texts
from compression_eval.fixtures.loading import load_fixture, load_pair
from tests.fixtures.building import (
    assistant,
    bank_data,
    call,
    fixture_data,
    good_probes,
    plain_messages,
    result,
    user,
    write_pair,
)

USER = Pseudonyms().of("user", "mmuster")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def refused(done: Result) -> str:
    assert done.exit_code == 1
    assert isinstance(done.exception, SystemExit)
    return done.stderr


def dirty_pair(folder: Path, name: str = "demo-mmuster") -> Path:
    """A fixture with a home path in its second to last message, and its bank."""
    folder.mkdir(exist_ok=True)
    messages = [
        *plain_messages(),
        user("It is in /home/mmuster/api, of uid=501(mmuster), at 10.20.30.40."),
        assistant("ok"),
    ]
    data = fixture_data(name=name, messages=messages)
    bank = bank_data(good_probes(), fixture=name)
    path = write_pair(folder, data, bank)
    assert path.stem == name
    return path


def test_scrub_writes_fixture_bank_and_report(tmp_path: Path) -> None:
    path = dirty_pair(tmp_path / "in")
    out = tmp_path / "deep" / "out"
    report = tmp_path / "report.json"
    done = run("scrub", path, "--out", out, "--report", report)
    assert done.exit_code == 0, done.output
    assert sorted(file.name for file in out.iterdir()) == [
        f"demo-{USER}.json",
        f"demo-{USER}.probes.json",
    ]
    pair = load_pair(out / f"demo-{USER}.json")
    assert pair.fixture.name == pair.bank.fixture == f"demo-{USER}"
    assert f"/home/{USER}/api" in pair.fixture.messages[-2].text
    assert pair.fixture.source is not None
    assert pair.fixture.source.scrubbing[0] == "secrets"
    assert "unix-home" in done.stdout
    assert "mmuster" not in done.stdout + report.read_text().replace(str(path), "")
    total = json.loads(report.read_text())["total"]
    assert {entry["rule"] for entry in total} == {"unix-home", "id", "ipv4"}
    again = run("scrub", out, "--out", tmp_path / "again")
    assert "nothing was replaced" in again.stdout
    first, second = (
        [file.read_bytes() for file in sorted(folder.iterdir())]
        for folder in (out, tmp_path / "again")
    )
    assert first == second
    clean = run("audit", out)
    assert (clean.exit_code, clean.stdout) == (0, "2 audited: 0 findings\n")


def session(folder: Path, name: str, *texts: str) -> Path:
    messages = [message for text in texts for message in (user(text), assistant("ok"))]
    return write_pair(folder, fixture_data(name=name, messages=messages))


def test_a_name_that_one_file_gives_away_goes_from_all_in_whatever_order(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    paths = [
        session(folder, "a", "mmuster wrote it, and qvist7 too"),
        session(folder, "b", "ls /home/mmuster/api", "by qvist7"),
        session(folder, "c", "uid=501(mmuster)", '"assignee": "qvist7"', "-ox4"),
    ]
    contents = []
    for out, order in (("x", paths), ("y", paths[::-1])):
        assert run("scrub", *order, "--out", tmp_path / out).exit_code == 0
        contents.append([(tmp_path / out / f"{name}.json").read_text() for name in "abc"])
    assert contents[0] == contents[1]
    assert "mmuster" not in "".join(contents[0])
    assert f"{USER} wrote it, and qvist7 too" in contents[0][0]  # known by one sign only
    alone = run("scrub", paths[0], "--out", tmp_path / "z")
    assert "nothing was replaced" in alone.stdout


ACCOUNT = {
    "login": "qvist7",
    "id": 5832310,
    "node_id": "MDQ6VXNlcjU4MzIzMTA=",
    "avatar_url": "https://avatars.githubusercontent.com/u/5832310?v=4",
    "html_url": "https://github.com/qvist7",
    "type": "User",
    "site_admin": False,
    "company": None,
    "name": "Otto",
}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"total": 5832311, "items": [{"id": 77, "user": ACCOUNT}]}),
        "map[" + " ".join(f"{key}:{value}" for key, value in ACCOUNT.items()) + "]",
    ],
)
def test_what_identifies_the_account_in_an_object_goes_with_its_name(
    text: str, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = session(folder, "a", text, "see 5832310 rows, and mark them")
    found = run("audit", path).stdout
    assert "handles: profile" in found
    assert "handles: a" in found
    done = run("scrub", path, "--out", tmp_path / "out", "--profile", "publish")
    assert done.exit_code == 0, done.output
    left = load_fixture(tmp_path / "out" / "a.json").messages
    assert left[2].text == "see 5832310 rows, and mark them"
    for gone in ("qvist7", "5832310", "MDQ6", "Otto"):
        assert gone not in left[0].text
    if text.startswith('{"total"'):
        assert json.loads(left[0].text)["total"] == 5832311
        assert json.loads(left[0].text)["items"][0]["id"] == 77
    assert run("audit", tmp_path / "out", "--profile", "publish").exit_code == 0


def test_a_name_that_one_file_shows_to_be_of_the_code_stays_in_all(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    text = "assigned to @kestrelv; by @qvist7"
    session(folder, "a", text)
    messages = [
        user("Run it."),
        assistant("", call("c1", command="cd /srv/app && kestrelv eval x")),
        result("c1", "KestrelV 1.2 in /home/fastjs2/src"),
        assistant("", call("c2", path="/home/fastjs2/src/main/fastjs2/a.java")),
        result("c2", "fastjs2"),
        assistant("ok"),
    ]
    other = write_pair(folder, fixture_data(name="b", messages=messages))
    done = run("scrub", folder, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    left = load_fixture(tmp_path / "out" / "a.json").messages[0].text
    assert left.startswith("assigned to @kestrelv; by @user")
    assert load_fixture(tmp_path / "out" / "b.json").messages == load_fixture(other).messages
    assert run("audit", tmp_path / "out").exit_code == 0


def test_a_key_changes_the_stand_ins(tmp_path: Path) -> None:
    path = dirty_pair(tmp_path / "in")
    (tmp_path / "key").write_text("my own\n")
    run("scrub", path, "--out", tmp_path / "a", "--key-file", tmp_path / "key")
    run("scrub", path, "--out", tmp_path / "b", "--key", "my own")
    named = [sorted(f.name for f in (tmp_path / x).iterdir()) for x in "ab"]
    assert named[0] == named[1]
    assert USER not in named[0][0]
    assert run("audit", tmp_path / "a").exit_code == 0
    (tmp_path / "key").write_text("\n")
    assert "the key is empty" in refused(
        run("scrub", path, "--out", tmp_path / "c", "--key-file", tmp_path / "key")
    )


def test_audit_names_file_field_and_rule(tmp_path: Path) -> None:
    path = dirty_pair(tmp_path / "in")
    done = run("audit", path)
    refused(done)
    assert f"{path}: messages[9].content: user_names: unix-home (aaa)" in done.stdout
    assert "mmuster/api" not in done.stdout
    assert done.stdout.endswith("findings\n")


def test_what_still_matches_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dirty_pair(tmp_path / "in")
    write_pair(tmp_path / "in", fixture_data(name="clean"), bank_data(fixture="clean"))
    monkeypatch.setattr(
        commands, "scrub", lambda fixture, *given: replace(scrub(fixture, *given), fixture=fixture)
    )
    done = run("scrub", tmp_path / "in", "--out", tmp_path / "out")
    error = refused(done)
    assert "still found: messages[9].content: user_names: unix-home (aaa)" in error
    assert error.endswith("demo-mmuster.json\n")
    assert "Error: 1 of 2 not written" in error
    assert sorted(f.name for f in (tmp_path / "out").iterdir()) == [
        "clean.json",
        "clean.probes.json",
    ]


@pytest.mark.parametrize("package", ["kingfisher-secret-scanner", "english-words"])
def test_without_a_package_of_the_extra_nothing_is_scrubbed_and_no_audit_passes(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        if name == package:
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(texts, "version", missing)
    path = dirty_pair(tmp_path / "in")
    needed = "scrubbing needs the extra scrub: pip install -e '.[scrub]'"
    assert needed in refused(run("scrub", path, "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()
    assert needed in refused(run("audit", path))


def test_an_input_is_never_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    path = write_pair(folder, fixture_data(name="demo"))
    before = path.read_bytes()
    assert "is an input" in refused(run("scrub", path, "--out", folder))
    assert path.read_bytes() == before


def test_a_fact_that_scrubbing_takes_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    messages = [
        user("go"),
        assistant("", call("c")),
        result("c", "x" * 3000 + " needle-7"),
        assistant("ok"),
    ]
    probes = [
        {
            "id": "p",
            "type": "recall",
            "question": "What?",
            "expected_facts": [{"fact": "needle-7", "evidence": [2]}],
        }
    ]
    path = write_pair(folder, fixture_data(messages=messages), bank_data(probes))
    done = run("scrub", path, "--out", tmp_path / "out", "--profile", "publish")
    assert done.exit_code == 0
    assert "after scrubbing: " in done.stderr
    assert "needle-7" in done.stderr
