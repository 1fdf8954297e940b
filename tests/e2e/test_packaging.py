"""The package works from another folder, however it was installed."""

import json
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.e2e import command

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed"),
]

PROGRAM = """
import json
from importlib.metadata import entry_points
import compression_eval
from compression_eval.fixtures.loading import load_pairs
pair, = load_pairs("zh-log-rotation")
points = [p.value for p in entry_points(group="inspect_ai") if p.name == "compression_eval"]
print(json.dumps({"package": compression_eval.__file__, "fixture": str(pair.fixture_path),
                  "probes": len(pair.bank.probes), "points": points}))
"""

RESUMES = """
import json
from inspect_ai import eval
from inspect_ai.model import ModelOutput, ModelUsage, get_model
said = ModelOutput.from_content("mockllm/model", "Done.")
said.usage = ModelUsage(input_tokens=9, output_tokens=1, total_tokens=10)
given = {"fixtures": "zh-log-rotation", "compressor": "full", "sandbox": "local"}
model = get_model("mockllm/model", custom_outputs=[said])
log, = eval("compression_eval/resumption", task_args=given, model=model, limit=1, display="none")
print(json.dumps({"failures": [check["failure"] for check in log.samples[0].store[
    "ResumptionRecord:checked"] if check["kind"] == "check"]}))
"""
MAX_SIZE = 6_000_000


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both distributions of the checkout."""
    folder = tmp_path_factory.mktemp("dist")
    for target in ("wheel", "sdist"):
        program = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(folder)]
        subprocess.run(program, cwd=command.ROOT, check=True, capture_output=True, timeout=300)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def installed(distribution: Path, folder: Path) -> Path:
    """Install a distribution alone; the dependencies are those of this interpreter."""
    venv.create(folder, with_pip=False, symlinks=True)
    python = folder / "bin" / "python"
    found = subprocess.run(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    packages = Path(found.stdout.strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    program = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    program += ["--no-deps", "--offline", "--no-build-isolation", "--reinstall"]
    subprocess.run([*program, str(distribution)], check=True, capture_output=True, timeout=300)
    return python


def seen_by(python: Path | str, cwd: Path, program: str = PROGRAM, **more: str) -> dict[str, str]:
    """Run a program in another folder."""
    result = subprocess.run(
        [str(python), "-c", program],
        cwd=cwd,
        env=command.environment(cwd, **more),
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
    )
    found: dict[str, str] = json.loads(result.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_an_installed_package_finds_its_fixtures(
    kind: str, built: dict[str, Path], tmp_path: Path
) -> None:
    python = installed(built[kind], tmp_path / "venv")
    found = seen_by(python, tmp_path)
    assert found["package"].startswith(str(tmp_path))
    assert found["fixture"].startswith(str(tmp_path))
    assert "_data/fixtures/zh-log-rotation.json" in found["fixture"]
    assert int(found["probes"]) >= 8
    assert "compression_eval._registry" in found["points"]
    if kind == "wheel":  # it has the code bases and the tasks, too
        failures = seen_by(python, tmp_path, RESUMES)["failures"]
        assert failures
        assert all(failures)
        evaluates = [str(python), "-m", "inspect_ai", "eval", "compression_eval/compression"]
        evaluates += ["--limit", "1", "--epochs", "1", "--display", "plain"]
        for program in ([str(python.with_name("compression-eval")), "--help"], evaluates):
            environment = command.environment(tmp_path)
            subprocess.run(program, cwd=tmp_path, env=environment, check=True, timeout=300)


def test_the_sdist_leaves_out_the_logs_of_the_findings(built: dict[str, Path]) -> None:
    with tarfile.open(built["sdist"]) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    assert {"LICENSE", "README.md", "pyproject.toml"} <= set(names)
    assert not [name for name in names if name.startswith("docs/findings/")]
    assert not [name for name in names if name.endswith((".eval", ".whl", ".pyc"))]
    assert built["sdist"].stat().st_size < MAX_SIZE


def test_the_wheel_holds_the_package_and_its_data_only(built: dict[str, Path]) -> None:
    names = zipfile.ZipFile(built["wheel"]).namelist()
    top = {name.split("/")[0] for name in names}
    assert "compression_eval" in top
    assert all(name == "compression_eval" or name.endswith(".dist-info") for name in top)
    assert "compression_eval/py.typed" in names
    data = command.ROOT / "datasets"
    shipped = {path.relative_to(data).as_posix() for path in data.rglob("*") if path.is_file()}
    folder = "compression_eval/_data/"
    assert {name.removeprefix(folder) for name in names if name.startswith(folder)} == shipped
    assert built["wheel"].stat().st_size < MAX_SIZE
    texts = [name for name in names if name.endswith((".md", ".yaml"))]
    sources = [
        path.relative_to(command.ROOT).as_posix()
        for path in (command.ROOT / "compression_eval").rglob("*")
        if path.suffix in (".md", ".yaml")
    ]
    assert set(texts) >= set(sources), "prompts and rubrics are read at run time"
