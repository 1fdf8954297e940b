"""Work over the machines of a Ray cluster gives what one process gives, whoever dies on the way."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import fsspec
import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import list_eval_logs, read_eval_log

from compression_eval.cli import main
from compression_eval.conversations import pipeline, scrubbing
from compression_eval.conversations.corpus import Corpus, Work
from compression_eval.conversations.scrubbing import AuditFinding, TextPasses
from compression_eval.conversations.stores import Store
from compression_eval.engine import RayEngine
from compression_eval.errors import DataError
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import find_sources
from compression_eval.fixtures.parquet_files import ParquetFixtures
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.sweeping.settings import SweepSettings
from tests.buckets import empty_bucket
from tests.e2e import small
from tests.fixtures.building import assistant, fixture_data, user
from tests.sweeping.commanding import EMBEDDED, settings_file

SESSIONS = 12
SHARD = ("--shard-mb", "0.001")
"""Of one to three sessions."""
CORPUS = ("--shard-mb", "64")

TOOLS = [{"type": "function", "function": {"name": "bash", "parameters": {"type": "object"}}}]


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of an empty bucket."""
    with empty_bucket("fleet") as address:
        yield address


@pytest.fixture(scope="module")
def cluster(bucket: str) -> Iterator[Any]:
    """A cluster of one node, whose workers find the bucket by their environment."""
    del bucket
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # A dead node is noticed after some seconds, not after half a minute.
        beats = {f"health_check_{name}_ms": 1000 for name in ("initial_delay", "period", "timeout")}
        node = {
            "_system_config": beats,
            "num_cpus": 1,
            "include_dashboard": False,
            "object_store_memory": 80 * 2**20,
        }
        made = Cluster(initialize_head=True, head_node_args=node)
        yield made
        made.shutdown()


@pytest.fixture
def sessions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sessions of which the last give away a name that is in the first.

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
            json.dumps(fixture_data(name=name, messages=messages, tools=TOOLS))
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
            time.sleep(0.3)
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
    unfinished = tmp_path / "out.unfinished"
    while not list(unfinished.glob("import-000000-*")):
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
    before = read.stat()
    read.write_text(read.read_text().replace("look at", "LOOK AT"))
    os.utime(read, ns=(before.st_atime_ns, before.st_mtime_ns))
    done = run(*arguments, "--out", "out")
    assert done.exit_code == 0, done.output
    assert rows(*parts(tmp_path / "out")) == rows(tmp_path / "one.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "one.parquet", "out"]
    again = run(*arguments, "--out", "out")
    assert again.exit_code == 0
    assert "was imported before" in again.stdout


def test_a_corpus_is_scrubbed_audited_and_asked_about_as_files_are(
    sessions: Path, tmp_path: Path
) -> None:
    for name in ("02", "04", "05", "07", "08", "09", "30-same", "40-broken"):
        (sessions / "deeper" / f"{name}.json").unlink()
    long = shipped_fixtures()["cron-config"].read_bytes()
    (sessions / "deeper" / "50.json").write_bytes(long)
    pack = ["import", "in", "--jobs", "1", "--out"]
    assert run(*pack, "corpus.parquet").exit_code == run(*pack, "files").exit_code == 0
    generate = ["probes", "generate"]
    done = [run("audit", "corpus.parquet", *SHARD), run("audit", "files")]
    assert [each.exit_code for each in done] == [1, 1]
    assert done[0].stdout.count(": user_names: ") == done[1].stdout.count(": user_names: ") > 0
    many = [run("scrub", "corpus.parquet", "--out", "scrubbed", *SHARD)]
    many += [run(*generate, "./scrubbed", "--out", "asked", *SHARD)]
    one = [run("scrub", "./files", "--out", "plain"), run(*generate, "./plain", "--out", "banks")]
    for ours, plain in zip(many, one, strict=True):
        assert ours.exit_code == 0, ours.output
        made, said = (each.stdout.partition("Go on with:")[0] for each in (ours, plain))
        lines = {line for line in said.splitlines() if not line.startswith("wrote ")}
        assert {line for line in made.splitlines() if line} == lines - {""}
    texts = [
        (row.file, *row.texts())
        for file in parts(tmp_path / "asked")
        for row in ParquetFixtures(file).rows()
    ]
    banks = {path.name: path.read_text() for path in Path("banks").iterdir()}
    assert banks
    assert sorted(texts) == [
        (path.stem, path.read_text(), banks.get(f"{path.stem}.probes.json"))
        for path in sorted(Path("plain").iterdir())
    ]
    assert "mmuster" not in str(texts)


@pytest.mark.slow
def test_a_sweep_asks_each_sample_once_when_a_node_dies(
    cluster: Any, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    monkeypatch.chdir(tmp_path)
    files = [small.write(Path("data"), f"tiny-{number}") for number in range(4)]
    second = cluster.add_node(num_cpus=1, object_store_memory=80 * 2**20)
    store = s3fs.S3FileSystem(skip_instance_cache=True, use_listings_cache=False)
    settings = settings_file(
        tmp_path,
        files[0],
        fixtures=[str(file) for file in files],
        epochs=1,
        arms=[{"compressor": "tail", "args": {"tail_tokens": size}} for size in (60, 90)],
        models=[EMBEDDED],
        roles={"grader": EMBEDDED, "compressor": "mockllm/never-called"},
    )
    engine = ["--engine", "ray", "--address", cluster.address]
    sweep = ["sweep", settings, *engine, "--log-dir", f"{bucket}/logs"]
    refused = run(*sweep)
    assert "max_connections: expected a number of at least 1" in refused.stderr
    done = while_running(
        lambda: run(*sweep, "-G", "max_connections=7"),
        lambda: bool(store.glob("fleet/logs/*/*.eval")),
        lambda: cluster.remove_node(second, allow_graceful=False),
    )
    assert done.exit_code == 0, done.output
    assert run("sweep", settings, "--log-dir", "one").exit_code == 0
    asked = [answers(place) for place in (f"{bucket}/logs", "one")]
    assert asked[0] == asked[1]
    assert len(asked[0]) == 2 * 4 * small.PROBES
    assert set(asked[0].values()) == {1}
    connections = {
        read_eval_log(log, header_only=True).eval.model_generate_config.max_connections
        for log in list_eval_logs(f"{bucket}/logs")
    }
    assert connections == {3}, "two workers with three each"
    assert not store.exists("fleet/logs/.sweep.lock")


@pytest.mark.usefixtures("here")
def test_a_bank_that_no_worker_finds_is_told_and_its_samples_are_taken_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files = [small.write(Path("data"), f"tiny-{number}") for number in range(3)]
    bank, without = (file.with_name(f"{file.stem}.probes.json") for file in files[1:])
    without.unlink()
    settings = settings_file(
        tmp_path,
        files[0],
        fixtures=[str(file) for file in files],
        epochs=1,
        arms=[{"compressor": "edit", "args": {"keep_tool_uses": 1}}],
        models=[EMBEDDED],
        roles={"grader": EMBEDDED},
    )
    sweep = ["sweep", str(settings), "--engine", "ray", "--log-dir", "logs"]
    with monkeypatch.context() as patch:

        def hidden(given: SweepSettings, arms: list[Arm]) -> SweepPlan:
            bank.rename("hidden")
            try:
                found = SweepPlan(given, arms)
                assert found.samples
                return found
            finally:
                Path("hidden").rename(bank)

        patch.setattr("compression_eval.sweeping.running.SweepPlan", hidden)
        done = run(*sweep)
    assert done.exit_code == 1
    planned = f"the command planned {2 * small.PROBES} samples"
    assert f"{planned}, and a worker finds {small.PROBES}: it" in done.stderr
    assert not answers("logs")
    done = run(*sweep)
    assert done.exit_code == 0, done.output
    assert len(answers("logs")) == 2 * small.PROBES


def answers(folder: str) -> Counter[str]:
    """Return every answer with its scores, by arm, sample and epoch, and how often it is there."""
    return Counter(
        str((log.eval.task_args["compressor_args"], sample.id, sample.epoch, values))
        for log in map(read_eval_log, list_eval_logs(folder))
        for sample in log.samples or []
        for values in [{name: score.value for name, score in (sample.scores or {}).items()}]
    )


class DeadError(BaseException):
    """Of workers that died; no exception of what they did."""


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand in for Ray by doing everything at once in this process."""

    def remote(task: Callable[..., Any]) -> Any:
        def call(*arguments: Any) -> Any:
            done = Future[Any]()
            try:
                done.set_result(task(*arguments))
            except DeadError as error:
                done.set_exception(RuntimeError(*error.args))
            return SimpleNamespace(future=lambda: done)

        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=call))

    ray = SimpleNamespace(
        is_initialized=lambda: True,
        cluster_resources=lambda: {"CPU": 1},
        remote=remote,
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray


def test_nothing_that_is_read_or_foreign_is_removed(
    here: SimpleNamespace, sessions: Path, tmp_path: Path
) -> None:
    engine = [*CORPUS, "--force", "--out"]
    assert run("import", sessions / "deeper" / "00.json", *engine, "corpus").exit_code == 0
    (tmp_path / "link").symlink_to("corpus")

    def refused(*arguments: str | Path) -> str:
        tree = sorted(tmp_path.rglob("*"))
        result = run(*arguments)
        assert result.exit_code == 1
        assert sorted(tmp_path.rglob("*")) == tree, arguments
        return result.stderr

    address = f"file://{tmp_path}/corpus"
    for command, place, out in (
        ("scrub", "corpus", "corpus/"),
        ("probes generate", "./corpus", "link"),
        ("import", "./link", "corpus"),
        ("import", address, "corpus"),
        ("import", "corpus", address),
    ):
        said = refused(*command.split(), place, *engine, out)
        assert f"--out: {out.rstrip('/')} is read from" in said
    assert "one.parquet: a corpus needs a folder" in refused("import", "in", *engine, "one.parquet")
    # OUT.unfinished would be another bucket.
    assert "expected a folder in it" in refused("import", "in", *engine, "memory://corpus")
    here.is_initialized = lambda: False
    ray = ["--engine", "ray", "--address", "127.0.0.1:1", "--force"]
    assert "cannot be reached" in refused("import", "in", *ray, "--out", "corpus")
    for place in ("corpus.unfinished/todo", "corpus/notes.txt", "other/part-000000.parquet"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        out, given = place.partition("/")[0].removesuffix(".unfinished"), engine
        if out == "other":  # --force takes parts
            given = [*CORPUS, "--out"]
        assert f"contains {path.name}" in refused("import", "in", *given, out)
        path.unlink()


def test_of_two_commands_that_begin_at_once_one_does(here: SimpleNamespace, sessions: Path) -> None:
    for out in ("local", "memory://bucket/both"):
        store = Store(f"{out}.unfinished")
        here.is_initialized = lambda at=store: at.create("manifest.jsonl", b"another's")
        done = run("import", sessions, "--engine", "ray", "--out", out)
        assert f"--out: {out}: another command has just begun there" in done.stderr
        assert {*store.sizes()} == {"manifest.jsonl"}
        assert store.read("manifest.jsonl") == b"another's"
        store.remove(".*")


def test_a_changed_file_is_other_input_and_nothing_plain_is_left(sessions: Path) -> None:
    command = ["import", str(sessions), *CORPUS, "--out", "out"]
    done = run(*command)
    assert done.exit_code == 0, done.output
    assert '"name": "bash"' in rows(*parts(Path("out")))[0][1]
    Path("out.unfinished").mkdir()
    Path("out.unfinished/import-000000").touch()
    Path("out.unfinished/manifest.jsonl").touch()  # of one that was killed before it wrote
    assert "was imported before" in run(*command).stdout
    assert not Path("out.unfinished").exists()
    read = sessions / "deeper" / "00.json"
    read.write_text(read.read_text().replace("look at", "LOOK AT"))
    os.utime(read, (1, 1))
    assert "out was made by another command, of other files" in run(*command).stderr


@pytest.mark.parametrize(
    ("step", "out"),
    [
        *((step, "engine") for step in ("build", "learn_from", "copy_of", "scrub", "fixture_text")),
        ("build", "fixtures"),
        ("audit", "out.parquet"),
    ],
)
def test_a_defect_at_one_conversation_of_an_import_is_its_failure_alone(
    step: str, out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner: Any = next(each for each in (pipeline, scrubbing, TextPasses) if hasattr(each, step))
    works = getattr(owner, step)

    def fails(*given: Any, **options: Any) -> Any:
        if "the second" in str(given):
            raise KeyError("a secret of the conversation")
        return works(*given, **options)

    monkeypatch.setattr(owner, step, fails)
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    for text in ("the first", "the second", "the third"):
        data = fixture_data(name=text[4:], messages=[user(text), assistant("ok")])
        Path("in", f"{text[4:]}.json").write_text(json.dumps(data))
    engine = CORPUS if out == "engine" else []
    command = ["import", "in", "--scrub", "default", "--duplicates", "longest", "--out", out]
    done = run(*command, *engine)
    assert done.exit_code == 1, done.output
    failure = r"in/second\.json: the import failed \(please report this\): KeyError in fails, line"
    assert re.search(failure, done.stdout), done.stdout
    assert "secret" not in done.output
    assert f"2 fixtures in {out}" in done.stdout
    assert "Error: 1 could not be imported" in done.stderr
    left = [source.read_fixture().messages[0].text for source in find_sources([out])]
    assert sorted(left) == ["the first", "the third"]


@pytest.mark.parametrize("engine", [[], CORPUS])
def test_copies_fail_with_the_longest(
    engine: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = AuditFinding("messages[1].content", "emails", "email", "a@b")
    monkeypatch.setattr(scrubbing, "audit", lambda made, *_: [finding] * (len(made.messages) == 4))
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    turns = [user("the first"), assistant("ok"), user("the second"), assistant("yes")]
    for name, messages in (("a", turns[:2]), ("b", turns), ("c", turns[:3]), ("d", turns[2:])):
        data = {"session_id": ("a" if name < "d" else name) * 12, "messages": messages}
        Path("in", f"{name}.json").write_text(json.dumps(data))
    done = run("import", "in", "--scrub", "default", "--duplicates", "longest", *engine)
    assert "in/b.json: not written, the audit still finds: messages[1].content" in done.stdout
    for name in ("a", "c"):
        said = f"in/{name}.json: its longer copy could not be imported, in/b.json\n"
        assert said in done.stdout
    assert "1 fixture in fixtures" in done.stdout
    assert done.stderr.endswith("Error: 3 could not be imported; see above\n")


class UnreachableError(Exception):
    """What the package of a store raises."""


@pytest.mark.parametrize("place", ["in", "memory://in"])
@pytest.mark.parametrize("engine", [[], CORPUS])
def test_a_file_that_cannot_be_read_this_time_is_read_again_or_fails(
    engine: list[str], place: str, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sessions / "deeper" / "10.json").unlink()  # now only the next gives a name away
    store = fsspec.filesystem("memory")
    store.put(str(sessions), "/in", recursive=True)
    owner, name = (type(store), "get_file") if "://" in place else (Path, "open")
    error = UnreachableError("no route") if "://" in place else OSError(5, "I/O error")
    works = getattr(owner, name)

    def fails(*given: Any, **options: Any) -> Any:
        if "11.json" in str(given):
            raise error
        return works(*given, **options)

    command = ["import", place, "--scrub", "default", *engine]
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fails)
        done = run(*command)
    assert done.exit_code == 1, done.output
    said = rf"in/deeper/11\.json: cannot be read: .*{error.args[-1]}"
    if engine:
        assert re.search(said, done.stderr)
        done = run(*command)
        assert done.exit_code == 0, done.output
    else:
        assert re.search(said, done.stdout)
        assert done.stderr.endswith("Error: 1 could not be imported; see above\n")
    store.rm("/in", recursive=True)
    assert f"{11 - (not engine)} fixtures" in done.stdout
    texts = str([source.read_fixture().messages for source in find_sources("./fixtures")])
    assert ("mmuster" in texts) == (not engine), "as without that file"


@pytest.mark.parametrize("place", ["", "memory://bucket/"])
def test_what_is_not_whole_is_not_taken_for_done(
    place: str, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = f"{place}out"
    store = Store(out)
    command = ["import", str(sessions), *SHARD, "--out", out]
    assert run(*command).exit_code == 0
    whole = {name: store.read(name) for name in store.sizes()}
    system, root = store._system()
    owner: Any = type(store._root)
    unlink = owner.unlink
    for end in range(1, len(whole), 3):
        left = iter(range(end))

        def remove(path: Any, left: Iterator[int] = left, **options: Any) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            unlink(path, **options)

        with monkeypatch.context() as patch:
            patch.setattr(owner, "unlink", remove)
            assert run(*command, "--force").exit_code == 130
        assert 1 <= len(store.sizes()) < len(whole)
        assert f"--out: {out} contains part-" in run(*command).stderr
        assert run(*command, "--force").exit_code == 0
        assert {name: store.read(name) for name in store.sizes()} == whole
    named = out if place else f"./{out}"
    assert find_sources(named)
    system.rm_file(f"{root}/part-000001.parquet")
    says = "part-000001.parquet' is missing, manifest.jsonl says "
    assert f"--out: {out}: '{says}" in run(*command).stderr
    assert f"fixtures: {out}: '{says}" in run("audit", named, *CORPUS).stderr
    assert find_sources(f"{named}/part-000002.parquet")
    system.rm_file(f"{root}/manifest.jsonl")
    for other in (["audit"], ["scrub", "--out", "scrubbed"]):
        done = run(*other, named, *CORPUS)
        assert f"fixtures: {out}: without manifest.jsonl its files are not all" in done.stderr
    assert run(*command, "--force").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Corpus, "_refuse_fault", lambda *_: 1 / 0)
        run(*command, "--force")
    system.rm_file(f"{root}/part-000001.parquet")
    assert f"--out: {out}: '{says}" in run(*command).stderr


def test_names_may_hold_what_fsspec_takes_for_a_chain(sessions: Path) -> None:
    Path("in/deeper/03.json").rename("in/deeper/memory::03.json")
    store = fsspec.filesystem("memory")
    store.put(str(sessions), "/in", recursive=True)
    for _ in range(2):
        done = run("import", "memory://in", *CORPUS, "--out", "run::1")
        assert done.exit_code == 0, done.output
    store.rm("/in", recursive=True)
    assert len(rows(*parts(Path("run::1")))) == SESSIONS
    assert sorted(path.name for path in Path().iterdir()) == ["in", "run::1"]


def test_the_output_may_be_links(sessions: Path) -> None:
    for name in ("out", "out.unfinished"):
        Path("elsewhere", name).mkdir(parents=True)
        Path(name).symlink_to(Path("elsewhere", name))
    for force in ([], ["--force"]):
        done = run("import", sessions, *CORPUS, "--out", "out", *force)
        assert done.exit_code == 0, done.output
    assert len(rows(*parts(Path("elsewhere/out")))) == SESSIONS
    assert list(Path("elsewhere/out.unfinished").iterdir()) == []


@pytest.mark.parametrize("gone", ["learn-.*[0-9a-f]", r"import-.*\.rows"])
def test_what_another_command_has_removed_is_no_damage(
    gone: str, sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Store.write

    def written(store: Store, name: str, content: bytes) -> None:
        write(store, name, content)
        if name.startswith(gone[:5]) and not name.endswith("rows"):
            store.remove(gone)

    monkeypatch.setattr(Store, "write", written)
    done = run("import", sessions, "--scrub", "default", *CORPUS, "--out", "out")
    assert "another command has ended or begun there meanwhile" in done.stderr


def test_what_workers_of_a_command_before_still_write_is_not_taken(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (sessions / "deeper" / "40-broken.json").unlink()
    command = ["import", str(sessions), *CORPUS, "--out"]
    assert run(*command, "clean", "--scrub", "default").exit_code == 0
    with monkeypatch.context() as patch:
        patch.setattr(Corpus, "close", lambda *_: 1 / 0)
        assert run(*command, "out").exit_code == 1
    plain = {path: path.read_bytes() for path in Path("out.unfinished").glob("import-*")}
    assert plain
    write = Store.write

    def written(store: Store, name: str, content: bytes) -> None:
        write(store, name, content)
        for path, late in plain.items():
            path.write_bytes(late)

    monkeypatch.setattr(Store, "write", written)
    done = run(*command, "out", "--scrub", "default", "--force")
    assert done.exit_code == 0, done.output
    assert rows(*parts(Path("out"))) == rows(*parts(Path("clean")))


def test_no_conversation_lies_beside_a_corpus_before_it_is_scrubbed(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Corpus, "close", lambda *_: 1 / 0)
        assert run("import", sessions, *SHARD, "--out", "out", "--scrub", "default").exit_code == 1
    store = Store("out.unfinished")
    kept = [
        row.values
        for path in Path("out.unfinished").glob("*.rows")
        for row in store.objects(path.name)
    ]
    assert len(kept) > SESSIONS
    assert not any("mmuster" in str(values) for values in kept)


def test_what_changes_between_learning_and_scrubbing_fails(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, share = sessions / "deeper" / "03.json", Work.share

    def shared(work: Work, value: Any) -> Any:
        read.write_text(read.read_text().replace("look at 3", "by Octavia7"))
        return share(work, value)

    monkeypatch.setattr(Work, "share", shared)
    done = run("import", sessions, *CORPUS, "--out", "out", "--scrub", "default")
    assert done.exit_code == 1
    assert "deeper/03.json: changed while it was read" in done.output
    assert not any("Octavia7" in text for _, text in rows(*parts(Path("out"))))


def test_what_failed_or_is_not_written_is_told_again(sessions: Path) -> None:
    engine = [*CORPUS, "--out"]
    broken = str(sessions / "deeper" / "40-broken.json")
    for said in ("1 could not be imported; see above", "done before"):
        result = run("import", "in", broken, *engine, "some")
        assert result.exit_code == 1
        assert said in result.stderr
    assert "1 could not be imported" in result.stderr
    explained = ["import", "in", *engine, "all", "--explain=account"]
    scrubbed = ["scrub", "./all", *engine, "scrubbed", "--report", "account"]
    asked = ["probes", "generate", "./all", *engine, "asked", "--report", "account"]
    for command in (explained, scrubbed, asked):
        first = run(*command)
        Path("account").unlink()
        again = run(*command)
        assert again.exit_code == 1
        failed = first.exit_code == 1
        said = "every fixture was skipped" if failed else "account: not written"
        assert said in again.stderr
        assert not Path("account").exists()


def test_errors_of_workers_are_told_when_all_else_is_done(here: SimpleNamespace) -> None:
    begun: list[BaseException | None] = []

    def work(unit: BaseException | None) -> None:
        begun.append(unit)
        if unit:
            raise unit

    def done(*units: BaseException | None) -> Iterator[tuple[int, None]]:
        return RayEngine().run("read", work, units, lambda unit: f"<{unit}>")

    results = done(DeadError("one"), None, DeadError("two"), None)
    assert [next(results)[0], next(results)[0]] == [1, 3]
    with pytest.raises(DataError) as told:
        next(results)
    why = "the workers that had it died"
    assert str(told.value) == f"read, <one>: {why}: one\nread, <two>: {why}: two"
    results = done(OSError("no space\nis left"), DataError("s3://b: gone"), None)
    assert next(results)[0] == 2
    with pytest.raises(DataError, match=r"OSError: no space is left\ns3://b: gone$"):
        next(results)
    begun.clear()
    with pytest.raises(DataError, match=r"9: no space is left$"):
        next(done(*[OSError(f"{number}: no space is left") for number in range(40)]))
    assert len(begun) == 10, "nothing else works either"
    with pytest.raises(DataError, match="compression_eval is not installed where its workers"):
        next(done(DeadError("ModuleNotFoundError: No module named 'compression_eval'")))
    here.is_initialized = lambda: False
    with (
        pytest.raises(DataError, match=r"--engine ray: 127\.0\.0\.1:1: cannot be reached"),
        RayEngine("127.0.0.1:1").opened(),
    ):
        pass


def test_a_cluster_that_grows_is_given_more_at_once(here: SimpleNamespace) -> None:
    begun: list[int] = []
    results = RayEngine().run("read", begun.append, range(20), str)
    next(results)
    assert len(begun) == 2
    here.cluster_resources = lambda: {"CPU": 4}
    assert [next(results)[0], next(results)[0]] == [1, 2]
    assert len(begun) == 2 + 8


def test_without_ray_one_line_says_what_to_install(
    sessions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    result = run("import", sessions, "--engine", "ray")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "--engine ray needs the extra ray: pip install -e '.[ray]'" in result.stderr
    assert list(Path().iterdir()) == [Path("in")]
