"""Which files the embedded model takes a conversation to have touched; see `tests/file_ops`."""

from compression_eval.offline.conversation import Call, Utterance, by_action, file_events


def said(*calls: Call) -> Utterance:
    return Utterance(4, "assistant", "", calls)


def bash(command: str) -> Call:
    return Call("bash", {"command": command})


def test_paths_are_listed_by_what_was_done_and_a_changed_file_not_again_as_read() -> None:
    text = "import os\n\ndef load(path):\n    pass\n\nclass Store:\n    pass\n"
    written = Call("write_file", {"path": "a.py", "content": text})
    calls = (bash("cat b.py c.md"), written, bash("sed -i s/a/b/ b.py; git mv d.py e.py; mkdir f"))
    events = file_events([said(*calls)])
    assert by_action(events) == {
        "created": ["a.py"],
        "modified": ["b.py"],
        "renamed": ["d.py -> e.py"],
        "read": ["c.md"],
    }
    assert {event.message for event in events} == {4}
    assert events[2].names == ("load", "Store")


def test_a_result_belongs_to_the_first_call_that_waits_for_one() -> None:
    failed = Utterance(5, "tool", "rm: cannot remove 'a': No such file\n[exit code 1]")
    utterances = [said(bash("rm a"), bash("rm b")), failed, Utterance(6, "tool", "ok")]
    assert by_action(file_events(utterances)) == {"deleted": ["b"]}
    assert by_action(file_events([said(bash("rm a"))])) == {"deleted": ["a"]}
