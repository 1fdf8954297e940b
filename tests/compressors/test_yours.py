"""Functions, classes and strategies of the user, by file and by module, and what is none."""

import importlib
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from inspect_ai.model import ChatMessageUser, ContentImage, ContentReasoning, ContentText

from compression_eval.compressors.chat_form import from_chat_form, to_chat_form
from compression_eval.compressors.registry import compressor_spec, source_digest
from compression_eval.compressors.state import State
from compression_eval.errors import DataError
from tests.compressors.conftest import conversation_fixture
from tests.compressors.yours import at_once, run, written

KINDS = '''
import asyncio
from functools import partial
from inspect_ai.model import ChatMessageUser, CompactionStrategy

NOTE = {"role": "user", "content": "a note"}

def plain(messages, keep: int = 3, *, label="note"):
    """In the OpenAI chat form."""
    assert isinstance(messages, list) and isinstance(messages[0], dict)
    return [messages[0], {**NOTE, "content": label}, *messages[-keep:]]

async def awaited(messages, keep: int = 3):
    await asyncio.sleep(0)
    return plain(messages, keep)

partly = partial(plain, label="from partial")

class WithCompress:
    def __init__(self, keep: int = 3):
        self.keep = keep
    def compress(self, messages):
        return plain(messages, self.keep)

an_object = WithCompress(3)

class Strategy(CompactionStrategy):
    def __init__(self, keep: int = 3):
        super().__init__(type="summary", memory=False)
        self.keep = keep
    async def compact(self, model, messages, tools):
        output = await model.generate([ChatMessageUser(content="summarise")])
        note = ChatMessageUser(content=output.completion)
        return [messages[0], note, *messages[-self.keep:]], note

an_instance = Strategy(3)
'''


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("user"), KINDS)


def shape(state: State) -> tuple[str, list[str], list[str | None]]:
    return state.status, list(state.regions), [m.id for m in state.messages][-3:]


@pytest.mark.parametrize(
    ("name", "arguments", "note"),
    [
        ("plain", {"label": "L", "keep": "1"}, "L"),
        ("awaited", {"keep": 1}, "note"),
        ("partly", {"keep": 1}, "from partial"),
        ("WithCompress", {"keep": 1}, "note"),
        ("an_object", {}, "note"),
        ("Strategy", {"keep": 1}, "written by the model"),
        ("an_instance", {}, "written by the model"),
    ],
)
def test_every_kind_gives_a_state_and_gets_its_arguments(
    kinds: Path, name: str, arguments: dict[str, Any], note: str
) -> None:
    last = len(conversation_fixture().messages)
    state = run(f"{kinds}@{name}")
    assert state.failure == ""
    assert shape(state) == (
        "ok",
        ["head", "summary", "tail", "tail", "tail"],
        [f"m{last - 3}", f"m{last - 2}", f"m{last - 1}"],
    )
    state = run(f"{kinds}@{name}", arguments)
    kept = 1 if arguments else 3
    assert (len(state.messages) - 2, state.messages[1].text) == (kept, note)


def test_effective_arguments_are_described_and_a_strange_default_by_its_type(
    kinds: Path, tmp_path: Path
) -> None:
    spec = compressor_spec(f"{kinds}@plain", {"label": "L"})
    own = {"keep": 3, "label": "L", "timeout_seconds": 600.0}
    assert spec.described() == {"name": f"{kinds}@plain", "arguments": own}
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


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the user is in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_a_module_is_found_where_the_user_is_and_refused_once_it_was_edited(here: Path) -> None:
    written(here, KINDS, "my_kinds.py")
    assert run("my_kinds:plain").status == "ok"
    first = source_digest(compressor_spec("my_kinds:plain"))
    written(here, KINDS + "# another version, of another size\n", "my_kinds.py")
    for _ in range(2):
        with pytest.raises(DataError, match="edited after this process imported it"):
            compressor_spec("my_kinds:plain")
    importlib.reload(sys.modules["my_kinds"])
    assert source_digest(compressor_spec("my_kinds:plain")) != first


def test_a_relative_file_is_seen_from_the_current_folder(here: Path) -> None:
    (here / "sub").mkdir()
    written(here / "sub", "from beside import compress\n")
    source = "def compress(messages): return [messages[0], {'role': 'user', 'content': 'n'}]\n"
    written(here / "sub", source, "beside.py")
    state = run("sub/mine.py@compress")
    assert (state.status, len(state.messages)) == ("ok", 2)


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("plane", {}, "did you mean 'plain'"),
        ("plain", {"kep": 3}, "it takes no kep; did you mean 'keep'"),
        ("an_instance", {"keep": 3}, "it takes no keep"),
    ],
)
def test_names_and_arguments_are_checked(
    kinds: Path, name: str, arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError, match=says):
        compressor_spec(f"{kinds}@{name}", arguments)


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


def test_the_files_that_define_it_decide_the_digest(here: Path) -> None:
    digests: list[str | None] = []
    for source in ("def y(messages): return messages[:2]\n", "def y(messages): return []\n"):
        sys.modules.pop("defines_y", None)
        written(here, source, "defines_y.py")
        path = written(here, f"from defines_y import y as x  # {len(digests)}\n")
        digests.append(source_digest(compressor_spec(f"{path}@x")))
    assert digests[0] != digests[1] == source_digest(compressor_spec(f"{path}@x"))
    assert source_digest(compressor_spec("tail")) is None


FAULTS = """
import asyncio, sys, time

def hangs(messages):
    time.sleep(3600)

async def hangs_awaited(messages):
    await asyncio.sleep(3600)

def exits(messages):
    sys.exit(3)

async def exits_with_status_401(messages):
    sys.exit(401)

def interrupts(messages):
    raise KeyboardInterrupt("now")

async def cancels_awaited(messages):
    raise asyncio.CancelledError
"""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("hangs", "no result within 0.2 seconds (timeout_seconds)"),
        ("hangs_awaited", "no result within 0.2 seconds (timeout_seconds)"),
        ("exits", "it raised SystemExit: 3"),
        ("exits_with_status_401", "SystemExit: 401"),
        ("interrupts", "it raised KeyboardInterrupt: now"),
        ("cancels_awaited", "CancelledError: the strategy cancelled itself"),
    ],
)
def test_whatever_a_function_does_is_the_failure_of_its_compression(
    tmp_path: Path, name: str, reason: str
) -> None:
    state = run(f"{written(tmp_path, FAULTS)}@{name}", {"timeout_seconds": 0.2})
    assert state.status != "ok"
    assert state.failure == reason


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def x(): return []", "wrong signature"),
        ("from inspect_ai.model import CompactionStrategy as x", "abstract"),
        ("class x: pass", "no method compress"),
        (
            "class x:\n def compress(self, messages, extra): return messages",
            "wrong signature; compress is called without 'extra', which belongs in the constructor",
        ),
        (
            "class x:\n def __init__(self): raise RuntimeError('no key')\n"
            " def compress(self, messages): return messages",
            "making it failed with RuntimeError: no key",
        ),
        ("import surely_not_there_at_all", "importing it failed with ModuleNotFoundError"),
        ("def x(messages, budget): return messages", "budget: Field required"),
    ],
)
def test_what_cannot_be_used_is_an_error_before_anything_runs(
    tmp_path: Path, source: str, says: str
) -> None:
    path = written(tmp_path, source)
    with pytest.raises(DataError, match="compressor") as error:
        compressor_spec(f"{path}@x")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module:x", "no module 'no_such_module'"),
        ("json:loadz", "no 'loadz' in"),
        ("mine.py:plain", "file.py@name"),
        ("nowhere/mine.py@plain", "there is no file nowhere/mine.py"),
    ],
)
def test_a_name_that_stands_for_nothing(name: str, says: str) -> None:
    with pytest.raises(DataError) as error:
        compressor_spec(name)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        ("None", "not a list of messages but NoneType"),
        ("[messages[0], {'content': 'x'}]", "message 1 of the reply: role: Field required"),
        (
            "[messages[0], {'role': 'assistant', 'tool_calls': [{'id': 'a', 'type': 'function',"
            " 'function': {'name': 'f', 'arguments': '{'}}]}]",
            "message 1 of the reply: tool_calls.0.function.arguments: ",
        ),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_bad_reply_fails_the_state_and_names_message_and_field(
    tmp_path: Path, reply: str, says: str
) -> None:
    state = run(f"{written(tmp_path, f'def x(messages): return {reply}')}@x")
    assert (state.status, state.messages) == ("error", [])
    assert says in state.failure


def test_what_has_no_text_form_is_named_and_comes_back_whole() -> None:
    message = ChatMessageUser(
        content=[
            ContentReasoning(reasoning="private"),
            ContentText(text="look"),
            ContentImage(image="data:image/png;base64,AAAA"),
        ]
    )
    there = to_chat_form([message])
    assert [part["text"] for part in there[0]["content"]] == ["look", "[image]"]
    assert anyio.run(from_chat_form, there, [message]) == [message]
