"""Functions, classes and strategies of the user, by file and by module."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.state import State
from compression_eval.compressors.user_supplied.adapting import source_digest
from compression_eval.errors import DataError
from tests.compressors.conftest import conversation_fixture
from tests.compressors.user_supplied.running import at_once, run, written

KINDS = '''
import asyncio
from functools import partial
from inspect_ai.model import ChatMessageUser, CompactionStrategy

NOTE = {"role": "user", "content": "a note"}

def plain(messages, keep: int = 3, *, label="note"):
    """In the OpenAI chat form."""
    assert isinstance(messages, list) and isinstance(messages[0], dict)
    return [messages[0], {**NOTE, "content": label}, *messages[-keep:]]

def counting(messages):
    return plain(messages, label=f"{len(messages)} messages")

async def awaited(messages, keep: int = 3):
    await asyncio.sleep(0)
    return plain(messages, keep)

async def _inner(messages, **kwargs):
    return plain(messages, **kwargs)

def hands_on(messages, **kwargs):
    return _inner(messages, **kwargs)

partly = partial(plain, label="from partial")

class WithCompress:
    def __init__(self, keep: int = 3):
        self.keep = keep
    def compress(self, messages, label="note"):
        return plain(messages, self.keep, label=label)

class AsyncCompress:
    async def compress(self, messages, keep=3, **kwargs):
        return plain(messages, keep, label=kwargs.get("anything", "note"))

an_object = WithCompress(3)

def makes_object(keep=3):
    return WithCompress(keep)

class Strategy(CompactionStrategy):
    def __init__(self, keep: int = 3):
        super().__init__(type="trim", memory=False)
        self.keep = keep
    async def compact(self, model, messages, tools):
        note = ChatMessageUser(content="note")
        # Made anew, as a strategy that goes through another library's messages does.
        tail = [m.model_copy(update={"id": None}) for m in messages[-self.keep:]]
        return [messages[0], note, *tail], None

class StrategyWithModel(CompactionStrategy):
    def __init__(self):
        super().__init__(type="summary", memory=False)
    async def compact(self, model, messages, tools):
        output = await model.generate([ChatMessageUser(content="summarise")])
        note = ChatMessageUser(content=output.completion)
        return [messages[0], note, *messages[-3:]], note

an_instance = Strategy(3)

def makes_strategy(keep=3):
    return Strategy(keep)

def needs_keep(keep: int) -> CompactionStrategy:
    return Strategy(keep)
'''


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("user"), KINDS)


def shape(state: State) -> tuple[str, list[str], list[str | None]]:
    return state.status, list(state.regions), [m.id for m in state.messages][-3:]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("plain", {}),
        ("awaited", {}),
        ("hands_on", {}),
        ("partly", {}),
        ("WithCompress", {}),
        ("AsyncCompress", {}),
        ("an_object", {}),
        ("an_object.compress", {}),
        ("makes_object", {}),
        ("Strategy", {}),
        ("StrategyWithModel", {}),
        ("an_instance", {}),
        ("makes_strategy", {}),
        ("needs_keep", {"keep": 3}),
    ],
)
def test_every_kind_gives_a_state_with_its_kept_messages_known(
    kinds: Path, name: str, arguments: dict[str, Any]
) -> None:
    state = run(f"{kinds}@{name}", arguments)
    last = len(conversation_fixture().messages)
    assert state.failure == ""
    assert shape(state) == (
        "ok",
        ["head", "summary", "tail", "tail", "tail"],
        [f"m{last - 3}", f"m{last - 2}", f"m{last - 1}"],
    )


@pytest.mark.parametrize(
    ("name", "arguments", "kept", "note"),
    [
        ("plain", {"keep": 1, "label": "L"}, 1, "L"),
        ("plain", {"keep": "1"}, 1, "note"),
        ("hands_on", {"keep": 1, "label": "L"}, 1, "L"),
        ("partly", {"keep": 1}, 1, "from partial"),
        ("WithCompress", {"keep": 1, "label": "L"}, 1, "L"),
        ("AsyncCompress", {"keep": 1, "anything": "L"}, 1, "L"),
        ("makes_object", {"keep": 1}, 1, "note"),
        ("Strategy", {"keep": 1}, 1, "note"),
    ],
)
def test_arguments_reach_constructor_and_call(
    kinds: Path, name: str, arguments: dict[str, Any], kept: int, note: str
) -> None:
    state = run(f"{kinds}@{name}", arguments)
    assert (len(state.messages) - 2, state.messages[1].text) == (kept, note)


def test_effective_arguments_are_described_with_their_defaults(kinds: Path) -> None:
    spec = compressor_spec(f"{kinds}@plain", {"label": "L"})
    assert spec.described() == {
        "name": f"{kinds}@plain",
        "arguments": {"keep": 3, "label": "L", "timeout_seconds": 600.0},
    }


@pytest.mark.parametrize("name", ["plain", "WithCompress", "Strategy", "makes_object"])
def test_ones_own_can_be_wrapped(kinds: Path, name: str) -> None:
    spec = compressor_spec(f"{kinds}@{name}+artifacts", {"keep": 1, "index_tokens": 300})
    state = run(spec)
    assert (state.failure, state.regions.count("tail")) == ("", 1)
    assert source_digest(spec) == source_digest(compressor_spec(f"{kinds}@{name}"))


def test_a_module_is_found_beside_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path, KINDS, "my_kinds_of_compressors.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert run("my_kinds_of_compressors:plain").status == "ok"


def test_a_module_that_was_edited_since_its_import_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    source = "def x(messages): return messages[:2]\n"
    written(tmp_path, source, "edited_since.py")
    first = source_digest(compressor_spec("edited_since:x"))
    written(tmp_path, source + "# another version, of another size\n", "edited_since.py")
    for _ in range(2):
        with pytest.raises(DataError, match="edited after this process imported it"):
            compressor_spec("edited_since:x")
    importlib.reload(sys.modules["edited_since"])
    assert source_digest(compressor_spec("edited_since:x")) != first


def test_a_relative_file_is_seen_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    written(tmp_path / "sub", "from beside import compress\n")
    written(
        tmp_path / "sub",
        "def compress(messages): return [messages[0], {'role': 'user', 'content': 'n'}]\n",
        "beside.py",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    state = run("sub/mine.py@compress")
    assert (state.status, len(state.messages)) == ("ok", 2)


def test_a_close_name_is_offered(kinds: Path) -> None:
    with pytest.raises(DataError, match="did you mean 'plain'"):
        compressor_spec(f"{kinds}@plane")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("plain", {"kep": 3}, "it takes no kep; did you mean 'keep'"),
        ("plain", {"keep": "many"}, "keep: Input should be a valid integer"),
        ("an_instance", {"keep": 3}, "it takes no keep"),
        ("Strategy", {"label": "x"}, "it takes no label"),
        ("needs_keep", {}, "keep: Field required"),
    ],
)
def test_arguments_are_checked_against_the_signature(
    kinds: Path, name: str, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError, match="compressor_args") as error:
        compressor_spec(f"{kinds}@{name}", arguments)
    assert says in str(error.value)


def test_odd_parameters_are_no_obstacle(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "class Odd: pass\n"
        "def x(messages, copy: Odd = Odd(), json=None, _hidden=1, schema: 'Unknown' = 2):\n"
        "    assert isinstance(copy, Odd) and json == {'a': 1} and schema == 2\n"
        "    return [messages[0], {'role': 'user', 'content': 'n'}]\n",
    )
    spec = compressor_spec(f"{path}@x", {"json": {"a": 1}})
    own = {"copy": "<Odd>", "json": {"a": 1}, "schema": 2}
    assert spec.described()["arguments"] == {**own, "timeout_seconds": 600.0}
    assert run(spec).status == "ok"


def test_what_a_function_does_to_its_input_does_not_reach_the_history(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "def x(messages):\n"
        "    kept = [messages[0], dict(messages[-1])]\n"
        "    for m in messages: m['content'] = 'gone'\n"
        "    return [{'role': 'system', 'content': 'gone'}, {'role': 'user', 'content': 'n'},"
        " kept[1]]\n",
    )
    state = run(f"{path}@x", fixture=conversation_fixture())
    # The system prompt was replaced, so the real one is put back before it.
    assert state.messages[-1].text == "Done for now."
    assert state.regions[-1] == "tail"


def test_plain_functions_never_run_twice_at_once_and_do_not_block(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "import threading, time\n"
        "inside = 0\n"
        "def x(messages):\n"
        "    global inside\n"
        "    assert threading.current_thread() is not threading.main_thread()\n"
        "    assert inside == 0\n"
        "    inside += 1; time.sleep(0.02); inside -= 1\n"
        "    return [messages[0], {'role': 'user', 'content': 'n'}]\n",
    )
    states = at_once(compressor_spec(f"{path}@x"), 5)
    assert [state.failure for state in states] == [""] * 5


def test_a_second_cycle_recognises_what_the_first_one_made(kinds: Path) -> None:
    fixture = conversation_fixture()
    state = run(f"{kinds}@counting", {}, fixture, cuts=(13, len(fixture.messages)))
    assert state.failure == ""
    assert list(state.regions) == ["head", "summary", "tail", "tail", "tail"]
    assert len(state.cycles) == 2
    assert state.cycles[0].applied == f"{kinds}@counting"


def test_the_source_decides_the_digest(tmp_path: Path) -> None:
    path = written(tmp_path, "def x(messages): return messages[:2]\n")
    first = source_digest(compressor_spec(f"{path}@x"))
    same = source_digest(compressor_spec(f"{path}@x"))
    written(
        tmp_path,
        "def x(messages):\n"
        "    return [messages[0], {'role': 'user', 'content': 'n'}, messages[-1]]\n",
    )
    spec = compressor_spec(f"{path}@x")
    assert first == same
    assert first != source_digest(spec)
    assert len(run(spec).messages) == 3
    assert source_digest(compressor_spec("tail")) is None


def test_the_digest_covers_the_file_that_defines_what_a_module_passes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    digests = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        defining = f"defines_for_digest_{number}"
        written(folder, f"def x(messages): return messages[:{number}]\n", f"{defining}.py")
        written(folder, f"from {defining} import x\n")
        digests.append(source_digest(compressor_spec(f"{folder / 'mine.py'}@x")))
    assert digests[0] != digests[1]


FAULTS = """
import asyncio, sys, threading, time

class Own(BaseException):
    pass

def hangs(messages):
    time.sleep(3600)

async def hangs_awaited(messages):
    await asyncio.sleep(3600)

def exits(messages):
    sys.exit(3)

async def exits_awaited(messages):
    sys.exit(3)

async def exits_with_status_401(messages):
    sys.exit(401)

def interrupts(messages):
    raise KeyboardInterrupt("now")

def own(messages):
    raise Own("mine")

async def own_awaited(messages):
    raise Own("mine")

def cancels(messages):
    raise asyncio.CancelledError

async def cancels_awaited(messages):
    raise asyncio.CancelledError
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hangs", "no result within 0.2 seconds (timeout_seconds)"),
        ("hangs_awaited", "no result within 0.2 seconds (timeout_seconds)"),
        ("exits", "it raised SystemExit: 3"),
        ("exits_awaited", "SystemExit: 3"),
        ("exits_with_status_401", "SystemExit: 401"),
        ("interrupts", "it raised KeyboardInterrupt: now"),
        ("own", "it raised Own: mine"),
        ("own_awaited", "Own: mine"),
        ("cancels", "it raised CancelledError"),
        ("cancels_awaited", "CancelledError: the strategy cancelled itself"),
    ],
)
def test_whatever_a_function_does_is_the_failure_of_its_compression(
    tmp_path: Path, name: str, reason: str
) -> None:
    state = run(f"{written(tmp_path, FAULTS)}@{name}", {"timeout_seconds": 0.2})
    assert state.status != "ok"
    assert state.failure == reason


def test_a_function_may_have_a_time_limit_of_its_own(tmp_path: Path) -> None:
    source = """
def limited(messages, timeout_seconds=5):
    return [messages[0], {"role": "user", "content": f"limit {timeout_seconds}"}, messages[-1]]
"""
    state = run(f"{written(tmp_path, source)}@limited", {"timeout_seconds": 7})
    assert "limit 7" in [message.text for message in state.messages]
