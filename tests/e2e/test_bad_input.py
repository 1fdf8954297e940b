"""Every bad input is refused with a message, before a model is called and a log is begun."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval as inspect_eval

from compression_eval import compression
from compression_eval.errors import DataError
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, Scripts

Arguments = dict[str, Any]


def refused(folder: Path, log_dir: Path, scripts: Scripts, given: Arguments) -> str:
    """Start a run that must be refused; returns the message."""
    arguments = {"fixtures": str(folder / "tiny.json"), **given}
    if "compressor" in given:
        arguments.setdefault("compressor_args", {})
    with pytest.raises(DataError) as caught:
        small.run(log_dir, **arguments)
    assert not any(script.calls for script in scripts.values()), "a model was called"
    left = [path for path in log_dir.rglob("*") if path.is_file()] if log_dir.exists() else []
    assert left == [], "something was written"
    return str(caught.value)


ARGUMENTS: list[tuple[Arguments, Sequence[str]]] = [
    ({"fixtures": ["feature-imp"]}, ["fixtures", "'feature-imp'", "did you mean feature-impl"]),
    ({"compressor": "anchord"}, ["compressor", "'anchord'", "did you mean 'anchored'"]),
    ({"compressor": "zzz"}, ["compressor", "'zzz'", "expected one of full, none,", "edit"]),
    (
        {"compressor_args": {"tail": 5}},
        ["compressor_args", "it takes no tail (arguments it takes: head_tokens, tail"],
    ),
    ({"compressor": "openai-compact"}, ["is not a model of openai"]),
    (
        {"compressor": "command", "compressor_args": {"command": ["no-such-program"]}},
        ["there is no program 'no-such-program'"],
    ),
    (
        {"compressor": "full", "compressor_args": {"tail_tokens": 5}},
        ["compressor_args", "'full'", "tail_tokens", "none"],
    ),
    ({"criteria": "some"}, ["criteria", "'some'", "by_type, all"]),
    ({"grader_context": "full"}, ["grader_context", "'full'", "state, none"]),
    ({"language": "fr"}, ["language", "'fr'", "en, zh, ja"]),
    ({"probe_types": "fact"}, ["probe_types", "'fact'", "recall, artifact"]),
    ({"cut": 12}, ["cut", "12", "1 to 11"]),
    ({"cut": 3}, ["cut", "3", "part a tool call", "nearest boundary is 2"]),
    ({"cut": "recordd"}, ["did you mean 'recorded'?"]),
    ({"answers": 0}, ["answers", "0", "at least 1"]),
    *(
        ({"min_removed": share}, [f"min_removed: {share!r} is not a share of at least 0 and less"])
        for share in (-0.1, 1, "half")
    ),
    ({"probes": "./no-such-folder"}, ["probes", "no-such-folder", "no such file"]),
]


@pytest.mark.parametrize(("given", "said"), ARGUMENTS, ids=[str(given) for given, _ in ARGUMENTS])
def test_an_argument_is_refused(
    given: Arguments, said: Sequence[str], tiny: Path, log_dir: Path, scripts: Scripts
) -> None:
    message = refused(tiny.parent, log_dir, scripts, given)
    for part in said:
        assert part in message
    before, suggests, _ = message.partition("did you mean")
    assert not suggests or "(" not in before, "the suggestion comes after the list of all"


MISSPELT = {**small.ROLES, "compresor": small.ROLES["compressor"]}
SAID_OF_IT = (
    "--model-role: 'compresor' is no role; did you mean 'compressor'? "
    "(expected grader=… or compressor=…)"
)


@pytest.mark.parametrize("task", ["compression", "resumption", "grader_calibration"])
def test_an_unknown_role_is_refused(task: str, log_dir: Path, scripts: Scripts) -> None:
    options: dict[str, Any] = {"model": f"scripted/{ANSWERS}", "model_roles": MISSPELT}
    with pytest.raises(DataError) as caught:
        inspect_eval(f"compression_eval/{task}", log_dir=str(log_dir), display="log", **options)
    assert str(caught.value) == SAID_OF_IT
    assert not log_dir.exists()


def test_a_task_made_before_its_roles_refuses_unknown_ones(
    tiny: Path, log_dir: Path, scripts: Scripts
) -> None:
    made = compression(fixtures=str(tiny), compressor_args=small.BUDGETS)
    options: dict[str, Any] = {"model": f"scripted/{ANSWERS}", "model_roles": MISSPELT}
    (log,) = inspect_eval(made, log_dir=str(log_dir), display="log", **options)
    assert log.status == "error"
    assert log.error is not None
    assert log.error.message == SAID_OF_IT
    assert not any(script.calls for script in scripts.values()), "a model was called"


Edit = Callable[[dict[str, Any]], object]

FILES: dict[str, tuple[str, Edit, Sequence[str]]] = {
    "a recorded session": (
        "tiny.json",
        lambda data: data.pop("name"),
        ["name: Field required", "not a fixture: recorded sessions are imported first, with"],
    ),
    "a misspelt field": (
        "tiny.json",
        lambda data: data.update(mesages=data.pop("messages")),
        ["messages: Field required; is 'mesages' meant?"],
    ),
    "a call without a result": (
        "tiny.json",
        lambda data: data["messages"].pop(3),
        ["messages[2]", "'c1'", "has no result"],
    ),
    "a cut that is out of range": (
        "tiny.json",
        lambda data: data.update(cuts=[6, 40]),
        ["cuts[1]", "40", "1 to 11"],
    ),
    "a bank of another fixture": (
        "tiny.probes.json",
        lambda data: data.update(fixture="huge"),
        ["fixture", "'huge'", "'tiny'"],
    ),
    "a probe whose cut is out of range": (
        "tiny.probes.json",
        lambda data: data["probes"][1].update(cut=40),
        ["probes[1].cut", "40", "1 to 11"],
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_a_file_is_refused(case: str, tiny: Path, log_dir: Path, scripts: Scripts) -> None:
    name, edit, said = FILES[case]
    path = tiny.with_name(name)
    data = json.loads(path.read_text(encoding="utf-8"))
    edit(data)
    path.write_text(json.dumps(data), encoding="utf-8")
    message = refused(tiny.parent, log_dir, scripts, {})
    for part in (str(path), *said):
        assert part in message


@pytest.mark.parametrize("name", ["tiny.json", "tiny.probes.json"])
def test_a_file_that_is_no_json_object_is_refused(
    name: str, tiny: Path, log_dir: Path, scripts: Scripts
) -> None:
    (tiny.parent / name).write_bytes(b'{"name": "tiny", "context_length": NaN}')
    message = refused(tiny.parent, log_dir, scripts, {})
    assert str(tiny.parent / name) in message
    assert "NaN" in message


@pytest.mark.parametrize(
    ("content", "said"), [(b"  \n", "empty"), (b"\xff\xfea", "UTF-8")], ids=["empty", "not UTF-8"]
)
def test_a_prompt_file_is_refused(
    content: bytes, said: str, tiny: Path, log_dir: Path, scripts: Scripts
) -> None:
    prompt = tiny.with_name("prompt.md")
    prompt.write_bytes(content)
    message = refused(tiny.parent, log_dir, scripts, {"prompt": str(prompt)})
    assert "prompt" in message
    assert str(prompt) in message
    assert said in message


def test_a_prompt_given_twice_is_refused(tiny: Path, log_dir: Path, scripts: Scripts) -> None:
    prompt = tiny.with_name("prompt.md")
    prompt.write_text("Summarise.")
    given = {"prompt": str(prompt), "compressor_args": {"prompt": "Other."}}
    assert "prompt: given both" in refused(tiny.parent, log_dir, scripts, given)


def test_a_fixture_without_a_bank_is_refused(tiny: Path, log_dir: Path, scripts: Scripts) -> None:
    tiny.with_name("tiny.probes.json").unlink()
    message = refused(tiny.parent, log_dir, scripts, {})
    assert f"{tiny}: no probe bank; looked for" in message
    assert "tiny.probes.json" in message
    assert message.endswith("(compression-eval probes generate FOLDER makes one)")


def test_one_bank_for_several_fixtures_is_refused(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    paths = [small.write(tmp_path / "data", name) for name in ("tiny", "other")]
    bank = paths[0].with_name("tiny.probes.json")
    message = refused(
        tmp_path, log_dir, scripts, {"fixtures": [str(path) for path in paths], "probes": str(bank)}
    )
    assert "probes" in message
    assert "2 fixtures" in message


def test_two_fixtures_of_one_name_are_refused(
    tmp_path: Path, log_dir: Path, scripts: Scripts
) -> None:
    paths = [small.write(tmp_path / folder) for folder in ("a", "b")]
    message = refused(tmp_path, log_dir, scripts, {"fixtures": [str(path) for path in paths]})
    assert "'tiny' is also the name of" in message
