"""Work over the machines of a Ray cluster gives what one process gives, whoever dies on the way."""

import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from compression_eval.cli import main
from compression_eval.fixtures.parquet_files import ParquetFixtures
from tests.fixtures.building import assistant, fixture_data, user

SESSIONS = 12
SHARD = ("--shard-mb", "0.001")
"""Of one to three sessions."""


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of an empty bucket."""
    s3fs = pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer("127.0.0.1", 0)
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "testing")
        s3fs.S3FileSystem(skip_instance_cache=True).mkdir("fleet")
        yield "s3://fleet"
    server.stop()


@pytest.fixture(scope="module")
def cluster(bucket: str) -> Iterator[Any]:
    """A cluster of one node, whose workers find the bucket by their environment."""
    del bucket
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 80 * 2**20}
        made = Cluster(initialize_head=True, head_node_args=node)
        yield made
        made.shutdown()


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sessions of which the last give away a name that stands in the first.

    Two have one name, two are the same, one is a copy that ends early, and one cannot be read.
    """
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "in" / "deeper"
    folder.mkdir(parents=True)
    for number in range(SESSIONS):
        texts = ["so mmuster said", f"look at {number}"]
        if number > SESSIONS - 3:
            texts = ["ls /home/mmuster/api", "uid=501(mmuster)"]
        messages = [message for text in texts for message in (user(text), assistant("ok"))]
        name = "twice" if number in (1, 6) else f"session-{number}"
        (folder / f"{number:02}.json").write_text(
            json.dumps(fixture_data(name=name, messages=messages))
        )
    (folder / "30-same.json").write_text((folder / "03.json").read_text())
    (folder / "40-broken.json").write_text('{"messages": [{"role": "user", "content": ')
    return tmp_path / "in"


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(main, [*map(str, arguments)])


def rows(*files: Path) -> list[tuple[str, str]]:
    """Return names and texts of the fixtures in Parquet files, in their order."""
    return [(row.name, row.texts()[0]) for file in files for row in ParquetFixtures(file).rows()]


def parts(folder: Path) -> list[Path]:
    """Return the files that a manifest names."""
    _, *lines = map(json.loads, (folder / "manifest.jsonl").read_text().splitlines())
    return [folder / line["file"] for line in lines]


def while_running(
    process: Callable[[], Result], ready: Callable[[], bool], act: Callable[[], object]
) -> Result:
    """Call a function; as soon as something is ready meanwhile, do something."""

    def watch() -> None:
        while not ready():
            time.sleep(0.05)
        act()

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    done = process()
    watcher.join(timeout=10)
    assert not watcher.is_alive(), done.output
    return done


@pytest.mark.slow
def test_an_import_from_and_to_a_store_loses_nothing_when_a_node_dies(
    cluster: Any, bucket: str, sessions: Path, tmp_path: Path
) -> None:
    import s3fs

    store = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    store.put(str(sessions), "fleet/in", recursive=True)
    second = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    arguments = ["--scrub", "default", "--duplicates", "longest"]
    engine = ["--engine", "ray", "--address", cluster.address, *SHARD]

    def many() -> Result:
        return run("import", f"{bucket}/in", *arguments, *engine, "--out", f"{bucket}/out")

    def learnt() -> bool:
        return bool(store.glob("fleet/out.unfinished/learn-*"))

    done = while_running(many, learnt, lambda: cluster.remove_node(second, allow_graceful=False))
    assert done.exit_code == 0, done.output
    one = run("import", sessions, *arguments, "--out", "one.parquet", "--jobs", 1)
    store.get("fleet/out", str(tmp_path / "out"), recursive=True)
    assert rows(*parts(tmp_path / "out")) == rows(tmp_path / "one.parquet")
    assert not store.exists("fleet/out.unfinished")
    # Ray itself says on stdout that a node is gone.
    tables = [text.stdout[text.stdout.index("\nfixture ") :] for text in (done, one)]
    assert (
        tables[0].replace(bucket, str(tmp_path)).replace(f"{tmp_path}/out", "one.parquet")
        == (tables[1])
    )
    assert "mmuster" not in str(rows(tmp_path / "one.parquet"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_import_goes_on_where_its_driver_was_killed(
    cluster: Any, sessions: Path, tmp_path: Path
) -> None:
    arguments = ["import", str(sessions), "--engine", "ray", "--address", cluster.address, *SHARD]
    driver = subprocess.Popen(
        [sys.executable, "-m", "compression_eval.cli", *arguments, "--out", "out"],
        stdout=subprocess.DEVNULL,
    )
    first = tmp_path / "out.unfinished" / "read-000000"
    while not first.exists():
        assert driver.poll() is None
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert not Path("out/manifest.jsonl").exists()
    other = run(*arguments, "--out", "out", "--duplicates", "longest")
    assert "out.unfinished was made by another command" in other.stderr
    assert run("import", sessions, "--out", "one.parquet", "--jobs", 1).exit_code == 0
    # What is done is not read again.
    read = sessions / "deeper" / "00.json"
    read.write_text(read.read_text().replace("look at", "LOOK AT"))
    done = run(*arguments, "--out", "out")
    assert done.exit_code == 0, done.output
    assert rows(*parts(tmp_path / "out")) == rows(tmp_path / "one.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "one.parquet", "out"]
    again = run(*arguments, "--out", "out")
    assert again.exit_code == 0
    assert "was imported before" in again.stdout


def test_without_ray_one_line_says_what_to_install(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = run("import", sessions, "--engine", "ray")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "pip install 'compression_eval[ray]'" in result.stderr
    assert list(Path().iterdir()) == [Path("in")]
