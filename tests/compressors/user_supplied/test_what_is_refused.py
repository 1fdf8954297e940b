"""What is no compressor, and replies that are no conversation."""

from pathlib import Path

import pytest

from compression_eval.compressors.registry import compressor_spec
from compression_eval.errors import DataError
from tests.compressors.user_supplied.running import run, written

BROKEN = {
    "number": "x = 3",
    "no_messages": "def x(): return []",
    "coroutine": "async def x(): return []",
    "keyword_messages": "def x(*, messages): return messages",
    "second_positional": "def x(messages, more, /): return messages",
    "abstract": "from inspect_ai.model import CompactionStrategy as x",
    "plain_class": "class x: pass",
    "method_without_messages": "class x:\n def compress(self): return []",
    "object_without_messages": "class C:\n def compress(self): return []\nx = C()",
    "constructor_fails": "class x:\n def __init__(self): raise RuntimeError('no key')\n"
    " def compress(self, messages): return messages",
    "import_fails": "import surely_not_there_at_all",
    "exits": "import sys; sys.exit(3)",
    "syntax": "def x(:",
    "required": "def x(messages, budget): return messages",
}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("number", "int cannot be called"),
        ("no_messages", "wrong signature"),
        ("coroutine", "wrong signature"),
        ("keyword_messages", "messages: Field required"),
        ("second_positional", "'more' has no default"),
        ("abstract", "abstract"),
        ("plain_class", "no method compress"),
        ("method_without_messages", "wrong signature"),
        ("object_without_messages", "wrong signature"),
        ("constructor_fails", "making it failed with RuntimeError: no key"),
        ("import_fails", "importing it failed with ModuleNotFoundError"),
        ("exits", "importing it failed with SystemExit"),
        ("syntax", "importing it failed with SyntaxError"),
        ("required", "budget: Field required"),
    ],
)
def test_what_cannot_be_used_is_an_error_before_anything_runs(
    tmp_path: Path, source: str, says: str
) -> None:
    path = written(tmp_path, BROKEN[source])
    with pytest.raises(DataError, match="compressor") as error:
        compressor_spec(f"{path}@x")
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("no_such_module:x", "no module 'no_such_module'"),
        ("json.no_such:x", "no module 'json.no_such'"),
        ("json:loadz", "no 'loadz' in"),
        ("json:", "not a name"),
        ("json:a b", "not a name"),
        (":x", "expected module:name"),
        ("../x:y", "file.py@name"),
        ("mine.py:plain", "file.py@name"),
        ("nowhere/mine.py@plain", "there is no file nowhere/mine.py"),
        ("@plain", "no file stands before the @"),
        ("README.md@plain", "README.md is not a .py file"),
    ],
)
def test_a_name_that_stands_for_nothing(name: str, says: str) -> None:
    with pytest.raises(DataError) as error:
        compressor_spec(name)
    assert says in str(error.value)


REPLIES = {
    "nothing": ("None", "not a list of messages but NoneType"),
    "text": ("'summary'", "not a list of messages but str"),
    "not_messages": ("[messages[0], 'x']", "message 1 of the reply"),
    "no_role": ("[messages[0], {'content': 'x'}]", "message 1 of the reply: role: Field required"),
    "bad_call": (
        "[messages[0], {'role': 'assistant', 'tool_calls': [{'id': 'a', 'type': 'function',"
        " 'function': {'name': 'f', 'arguments': '{'}}]}]",
        "message 1 of the reply: tool_calls.0.function.arguments: ",
    ),
    "half_a_pair": (
        "[messages[0], {'role': 'user', 'content': '\\ud800'}]",
        "message 1 of the reply: content: ",
    ),
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
}


@pytest.mark.parametrize("name", REPLIES)
def test_a_bad_reply_fails_the_state_and_names_message_and_field(tmp_path: Path, name: str) -> None:
    expression, says = REPLIES[name]
    path = written(tmp_path, f"def x(messages): return {expression}")
    state = run(f"{path}@x")
    assert state.status == "error"
    assert says in state.failure
    assert state.messages == []


def test_strategies_must_return_messages(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "from inspect_ai.model import CompactionStrategy\n"
        "class x(CompactionStrategy):\n"
        "    def __init__(self): super().__init__(type='trim')\n"
        "    async def compact(self, model, messages, tools): return [messages[0], {}], None\n",
    )
    state = run(f"{path}@x")
    assert (state.status, state.failure) == (
        "error",
        "message 1 of the result is no ChatMessage but dict",
    )
