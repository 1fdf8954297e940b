"""Which interpreter is used, and what is said when there is none, before anything is paid for."""

import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from compression_eval.cli import main
from compression_eval.compressors import hermes as interpreter
from compression_eval.compressors.registry import compressor_spec
from compression_eval.errors import DataError
from tests.compressors.hermes.conftest import FAKE_HERMES


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(interpreter, "user_cache_path", lambda *_, **__: folder)
    return folder


def build(**arguments: object) -> None:
    compressor_spec("hermes", arguments)


def wheel(folder: Path, version: str) -> Path:
    """A package of that name and version that contains the stand-in."""
    info = f"hermes_agent-{version}.dist-info"
    file = folder / f"hermes_agent-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for path in FAKE_HERMES.rglob("*.py"):
            archive.write(path, path.relative_to(FAKE_HERMES))
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: hermes-agent\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return file


def pin(folder: Path, version: str, digest: str) -> None:
    """Write the list of the packages that a version needs."""
    (folder / f"{version}.txt").write_text(f"hermes-agent=={version} --hash=sha256:{digest}\n")


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("version", "command"),
    [
        ("0.19.0", "compression-eval compressors install hermes"),
        ("0.13.0", "compression-eval compressors install hermes --version 0.13.0"),
    ],
)
def test_without_an_interpreter_the_spec_names_the_command(version: str, command: str) -> None:
    with pytest.raises(DataError, match=rf"hermes-agent {version} is not installed .*{command}$"):
        build(version=version)


@pytest.mark.parametrize("path", ["python", "/no/such/python"])
def test_an_interpreter_of_the_user_must_be_there(path: str) -> None:
    with pytest.raises(DataError, match="expected the absolute path of an interpreter"):
        build(python=path)


def test_an_argument_that_no_version_has_is_refused(fake_python: Path) -> None:
    with pytest.raises(
        DataError, match=r"protect_last: no such argument .* takes protect_last_n, "
    ):
        build(python=str(fake_python), constructor={"protect_last": 3})
    build(python=str(fake_python), constructor={"protect_last_n": 3})


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("version", ["../0.19.0", "0.19.0 --index-url=http://x", "latest", ""])
def test_install_takes_versions_only(version: str) -> None:
    result = CliRunner().invoke(main, ["compressors", "install", "hermes", "--version", version])
    assert result.exit_code == 1
    assert "is not a version of a package" in result.output


@pytest.mark.slow
def test_install_makes_an_environment_once_of_pinned_packages_and_leaves_nothing_half_made(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = wheel(tmp_path, "0.19.0")
    pin(tmp_path, "0.19.0", hashlib.sha256(file.read_bytes()).hexdigest())
    monkeypatch.setattr(interpreter, "PINNED", tmp_path)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    command = ["compressors", "install", "hermes"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 0, result.output
    assert f"hermes-agent 0.19.0 is ready in {cache / 'hermes' / '0.19.0'}" in result.output
    build()

    made = (cache / "hermes" / "0.19.0").stat().st_ino
    assert CliRunner().invoke(main, command).exit_code == 0
    assert (cache / "hermes" / "0.19.0").stat().st_ino == made, "not made again"
    result = CliRunner().invoke(main, [*command, "--version", "0.18.2"])
    assert result.exit_code == 1
    assert "hermes-agent 0.18.2 could not be installed" in result.output
    wheel(tmp_path, "0.13.0")
    pin(tmp_path, "0.13.0", "0" * 64)  # the digest of another package
    result = CliRunner().invoke(main, [*command, "--version", "0.13.0"])
    assert "hermes-agent 0.13.0 could not be installed" in result.output
    assert [path.name for path in (cache / "hermes").iterdir()] == ["0.19.0"]


@pytest.mark.usefixtures("cache")
def test_the_installer_gets_wheels_only_and_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[list[str], dict[str, str]]] = []

    def record(command: list[str], **given: Any) -> None:
        ran.append((command, given["env"]))
        if "pip" in command:
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", record)
    monkeypatch.setenv("SOME_API_KEY", "secret")
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    for version in ("0.19.0", "0.18.2"):
        CliRunner().invoke(main, ["compressors", "install", "hermes", "--version", version])
    pinned, other = [(command, env) for command, env in ran if "pip" in command]
    for command, env in (pinned, other):
        assert "--only-binary=:all:" in command
        assert "SOME_API_KEY" not in env
        assert env["PIP_TIMEOUT"] == "7"
    assert "--require-hashes" in pinned[0]
    assert other[0][-1] == "hermes-agent==0.18.2"
