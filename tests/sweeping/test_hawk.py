"""A sweep written for Hawk, whose runner makes of it the tasks that the sweep itself would run."""

import sys
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import pytest
import yaml
from inspect_ai import eval_set
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.util import registry_create
from pydantic import BaseModel, ConfigDict, Field

from compression_eval.sweeping.arms import task_key
from tests.sweeping.commanding import EMBEDDED, run, settings_file


class Fields(BaseModel):
    """What we write of Hawk's configuration (hawk 3.7.1, hawk.core.types), and nothing else."""

    model_config = ConfigDict(extra="forbid")


class Item(Fields):
    """A task, or a model with what Inspect's `get_model` takes beside `config`."""

    name: str
    args: dict[str, Any] | None = None


class Package(Fields):
    """What is installed, and the name of its entry point for Inspect."""

    package: str = Field(pattern="^compression_eval")
    name: str
    items: list[Item]


class BuiltIn(Fields):
    """Models whose provider comes with Inspect."""

    package: Literal["inspect-ai"]
    items: list[Item]


class Epochs(Fields):
    """Epochs, and how their scores become one."""

    epochs: int
    reducer: str


class EvalSet(BaseModel):
    """The fields by which Hawk fills an eval set; others it hands to Inspect's `eval_set`."""

    model_config = ConfigDict(extra="allow")

    name: str = Field(min_length=1)
    tasks: list[Package]
    models: list[BuiltIn | Package]
    model_roles: dict[str, BuiltIn | Package] = {}
    packages: list[str] = []
    epochs: Epochs
    retry_attempts: int
    log_realtime: bool


def exported(*arguments: str) -> EvalSet:
    done = run("sweep", *arguments, "--export", "hawk")
    assert done.code == 0, done.errors
    return EvalSet.model_validate(yaml.safe_load(done.output))


@pytest.mark.slow
def test_what_hawk_runs_is_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.md").write_text("Keep every number.")
    file = settings_file(
        tmp_path,
        tmp_path,
        arms=[
            {"compressor": "anchored", "args": {"tail_tokens": 3000}, "prompt": "own.md"},
            {"compressor": "masking"},
        ],
        fixtures=["cron-config"],
        probe_types=["decision"],
        epochs=1,
    )
    told = run("sweep", str(file), "--export", "hawk", "--out", "set.yaml")
    assert told.code == 0, told.errors
    written = EvalSet.model_validate(yaml.safe_load(Path("set.yaml").read_text()))
    assert not Path("sweep").exists(), "nothing is run"
    (package,) = written.tasks
    Path("own.md").unlink()
    tasks = [
        registry_create("task", f"{package.name}/{item.name}", **(item.args or {}))
        for item in package.items
    ]
    # Of a built-in model Hawk takes the name as it is; the embedded one is this package's.
    (model,) = written.models
    assert isinstance(model, Package)
    named = f"{model.name}/{model.items[0].name}"
    assert named == EMBEDDED
    _, logs = eval_set(
        tasks,
        log_dir="logs",
        model=get_model(named),
        model_roles={"grader": get_model(named)},
        epochs=written.epochs.epochs,
        display="none",
        log_realtime=written.log_realtime,
        retry_attempts=written.retry_attempts,
    )
    Path("own.md").write_text("Keep every number.")
    ours = run("sweep", str(file), "--log-dir", "ours")
    assert ours.code == 0, ours.errors
    results = []
    for log in (*logs, *map(read_eval_log, list_eval_logs("ours"))):
        summaries = read_eval_log_sample_summaries(log.location)
        scores = {
            (each.id, each.epoch, name): score.value
            for each in summaries
            for name, score in (each.scores or {}).items()
        }
        results.append((task_key(log.eval), log.eval.task_version, repr(sorted(scores.items()))))
    assert sorted(results[:2]) == sorted(results[2:])
    assert told.output.rstrip().endswith(f"2 tasks, {len(summaries) * 2} samples")


def test_models_roles_and_generation_options_stand_where_hawk_looks_for_them() -> None:
    pytest.importorskip("langchain")
    models = ["--models", "anthropic/a,google/b", "--model-role", "grader=openai/c"]
    options = ["-G", "temperature=0.5", "--max-retries", "4", "-M", "region=west"]
    options += ["-M", "api_version=2024-10-21", "-M", "tokenizer=t", "-G", "max_tokens=9"]
    options += ["--model-base-url", "https://models.example", "--epochs", "2", "--answers", "3"]
    written = exported("--arms", "full,langchain", *models, *options, "--retry-attempts", "1")
    config = {"temperature": 0.5, "max_tokens": 9, "max_retries": 4}
    args = {"config": config, "base_url": "https://models.example", "region": "west"}
    args |= {"api_version": "2024-10-21", "tokenizer": "t"}
    assert [each.model_dump() for each in written.models] == [
        {"package": "inspect-ai", "items": [{"name": name, "args": args}]}
        for name in ("anthropic/a", "google/b")
    ]
    assert [each.items[0].name for each in written.model_roles.values()] == ["openai/c"]
    assert written.packages == ["google-genai"]
    assert (written.epochs.epochs, written.retry_attempts) == (6, 1)
    assert GenerateConfig.model_validate(written.model_extra).model_dump(
        exclude_none=True
    ) == GenerateConfig.model_validate(config).model_dump(exclude_none=True)
    (package,) = written.tasks
    assert package.package.startswith("compression_eval[langchain]==")
    assert [item.args and item.args["compressor"] for item in package.items] == [
        *("none", "tail", "full", "langchain")
    ]
    spec = "compression_eval @ git+ssh://git@example.org/ce@v1"
    (package,) = exported("--arms", "none", "--fixtures", "core", "--package", spec).tasks
    assert package.package == spec
    assert package.items[0].args
    assert package.items[0].args["fixtures"] == ["core"]


PRESIGNED = "b.s3.amazonaws.com/own.json?X-Amz-Expires=60&X-Amz-Signature=00ff"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fixtures", "./own.json"], "'./own.json': lies on this machine"),
        (["--fixtures", "file://HERE/own.json"], "…': lies on this machine"),
        (["--probes", "banks"], "probes: banks: lies on this machine"),
        (["--arms", "own.py@shorter"], "arms: own.py@shorter: is your own code"),
        (["--model-role", "grader=openai/a,openai/b"], "grader: Hawk binds one model to a role"),
        (["--fixtures", "simplecache::file://HERE/own.json"], "lies on this machine"),
        (["--fixtures", "zip://own.json::HERE/own.zip"], "lies on this machine"),
        (["-M", "api_key=x"], "model_args: api_key: Hawk takes no keys"),
        (["-M", "accessToken=x"], "model_args: accessToken: Hawk"),
        (["-M", "default_headers={Authorization: x}"], "model_args: default_headers: Hawk"),
        (["-M", "db_passphrase=x"], "model_args: db_passphrase: Hawk"),
        (["-M", "passcode=1"], "model_args: passcode: Hawk"),
        (["-M", "PWD=x"], "model_args: PWD: Hawk"),
        (["-M", "client={cookies: {a: b}}"], "model_args: client: cookies: Hawk"),
        (["-M", "cookie=x"], "model_args: cookie: Hawk"),
        (["-M", "bearer=x"], "model_args: bearer: Hawk"),
        (["-M", "auth=[me, x]"], "model_args: auth: Hawk"),
        (["-M", "proxyAuth=x"], "model_args: proxyAuth: Hawk"),
        (["-M", "github_pat=x"], "model_args: github_pat: Hawk"),
        (["--model-base-url", "https://h.example/v1?pwd=x"], "model_base_url: a key in"),
        (["-M", "options={login: {password: x}}"], "model_args: options: login: password: Hawk"),
        (["-G", "extra_headers={a: b}"], "generate: extra_headers: Hawk"),
        (["--model-base-url", "https://me:x@h.example/v1"], "model_base_url: a user or password"),
        (["--package", "git+https://x:TOKEN@h.example/ce"], "--package: a user or password before"),
        (["--package", f"ce @ https://{PRESIGNED}"], "--package: a key in the query of an address"),
        (["--model-base-url", "https://h.example/v1?v=1&api_key=x"], "model_base_url: a key in"),
        (["-M", f"region=sk-{'a1B2' * 10}"], "model_args: region: what looks like a key: Hawk"),
        (["--out", "./own.yaml", "own.yaml"], "--out: own.yaml holds the settings"),
        (["--max-failed", "0.2"], "max_failed: nobody judges failures there"),
        (["--max-samples", "3"], "not with --max-samples"),
        (["--part", "3"], "not with --part"),
        (["--out", "missing/set.yaml"], "/missing: no such folder"),
    ],
)
def test_what_hawk_would_not_have_is_refused(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    Path("own.json").touch()
    Path("banks").mkdir()
    Path("own.py").write_text("def shorter(messages):\n    return messages[-3:]\n")
    Path("own.yaml").write_text("epochs: 1")
    with ZipFile("own.zip", "w") as archive:
        archive.write("own.json")
    before = sorted(tmp_path.iterdir())
    given = ["--arms", "masking", "--fixtures", "cron-config", "--export", "hawk"]
    done = run("sweep", *given, *(each.replace("HERE", str(tmp_path)) for each in arguments))
    assert done.code
    assert said in done.errors.splitlines()[-1]
    assert done.output == ""
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        (f"Send it with Bearer {'a1B2' * 6}.", "what looks like a key"),
        (f"Read https://{PRESIGNED}", "a key in the query of an address"),
        ("Read <https://h.example/p#access_token=x>", "a key in the query of an address"),
    ],
)
@pytest.mark.parametrize("in_file", [True, False])
def test_a_key_in_a_prompt_is_not_written(
    prompt: str, said: str, in_file: bool, tmp_path: Path
) -> None:
    own = tmp_path / "own.md"
    own.write_text(prompt)
    given = {"prompt": str(own)} if in_file else {"args": {"prompt": prompt}}
    arms = [{"compressor": "anchored", **given}]
    file = settings_file(tmp_path, tmp_path, arms=arms, fixtures=["cron-config"])
    done = run("sweep", str(file), "--export", "hawk")
    assert done.code
    assert f"compressor_args: prompt: {said}: Hawk takes no keys" in done.errors
    assert done.output == ""


def test_names_that_only_resemble_those_of_keys_are_written() -> None:
    names = ("auth_type", "author", "compat", "cookie_policy", "path", "pattern")
    options = [part for name in names for part in ("-M", f"{name}=n")]
    written = exported("--arms", "none", "--models", "openai/a", *options)
    assert written.models[0].items[0].args == dict.fromkeys(names, "n")


def test_a_prompt_may_speak_of_keys(tmp_path: Path) -> None:
    prompt = (
        "Use ;key=val. Do you know the key?token=5 or `?api_key=NAME`? "
        "Read https://h.example/p?page_token=1&token_count=5#key"
    )
    arms = [{"compressor": "anchored", "args": {"prompt": prompt}}]
    file = settings_file(tmp_path, tmp_path, arms=arms, fixtures=["cron-config"])
    (package,) = exported(str(file)).tasks
    (args,) = (item.args for item in package.items)
    assert args
    assert args["compressor_args"] == {"prompt": prompt}
