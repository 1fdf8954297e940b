import pytest

from compression_eval.embedded.conversation import Action, Call, Utterance, by_action, file_actions


def actions(*calls: Call) -> dict[Action, list[str]]:
    return by_action(file_actions([Utterance(0, "assistant", "", calls)]))


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (Call("write_file", {"path": "a.py", "content": "x"}), {"created": ["a.py"]}),
        (Call("Edit", {"file_path": "a.py", "new_string": "x"}), {"modified": ["a.py"]}),
        (Call("read_file", {"path": "a.py"}), {"read": ["a.py"]}),
        (bash("cat src/a.py | head -3"), {"read": ["src/a.py"]}),
        (bash("sed -n '1,20p' src/a.py && ls"), {"read": ["src/a.py"]}),
        (bash("git mv a.py b.py"), {"renamed": ["a.py -> b.py"]}),
        (bash("rm -f old/a.py"), {"deleted": ["old/a.py"]}),
        (bash("cp a.py copy/b.py"), {"created": ["copy/b.py"]}),
        (bash("python gen.py > out/list.txt 2>/dev/null"), {"created": ["out/list.txt"]}),
        (bash("sed -i 's/a/b/' src/a.py"), {"modified": ["src/a.py"]}),
        (
            Call("apply_patch", {"input": "*** Add File: n.go\n+x\n*** Update File: o.go\n"}),
            {"created": ["n.go"], "modified": ["o.go"]},
        ),
        (bash("make test"), {}),
        (Call("write_file", {"path": "x" * 900, "content": ""}), {}),
        (Call("write_file", {"path": 3}), {}),
    ],
)
def test_operations_are_told_from_calls(call: Call, expected: dict[Action, list[str]]) -> None:
    assert actions(call) == expected


def test_writing_a_file_again_modifies_it_and_hides_that_it_was_read() -> None:
    write = Call("write_file", {"path": "a.py", "content": "x"})
    read = Call("read_file", {"path": "a.py"})
    assert actions(read, write) == {"modified": ["a.py"]}
    assert actions(write, write) == {"created": ["a.py"], "modified": ["a.py"]}


def test_a_change_is_described_by_the_names_it_defines() -> None:
    text = "import os\n\ndef load(path):\n    pass\n\nclass Store:\n    pass\n"
    call = Call("write_file", {"path": "a.py", "content": text})
    found = file_actions([Utterance(4, "assistant", "", (call,))])
    assert [(action.message, action.detail) for action in found] == [(4, "load, Store")]
