"""The merge that code does, whatever a model proposes."""

from compression_eval.compressors.anchored import Memory, Operations


def operations(*items: dict[str, str]) -> Operations:
    return Operations.model_validate({"operations": list(items)})


def words(text: str) -> int:
    return len(text.split())


def memory_with(*texts: str, section: str = "files") -> Memory:
    return Memory().merged(
        operations(*({"op": "add", "section": section, "text": text} for text in texts))
    )


def test_untouched_entries_stay_byte_for_byte() -> None:
    before = memory_with("src/a.py: created", "src/b.py:   odd  spacing is folded once")
    after = before.merged(operations({"op": "supersede", "id": "f1", "text": "src/a.py: deleted"}))
    assert after.sections["files"][1] == before.sections["files"][1]
    assert after.sections["files"][0].text == "src/a.py: deleted"
    assert before.sections["files"][0].text == "src/a.py: created"


def test_closing_keeps_the_text_and_adds_the_outcome() -> None:
    memory = memory_with("run the migration", section="next_steps")
    memory = memory.merged(operations({"op": "close", "id": "n1", "text": "done in 41 s"}))
    (entry,) = memory.sections["next_steps"]
    assert entry.closed
    assert entry.text == "run the migration -> done in 41 s"
    assert "- [closed] run the migration -> done in 41 s" in memory.render()


def test_an_operation_on_an_unknown_id_changes_nothing_and_is_counted() -> None:
    before = memory_with("one")
    after = before.merged(operations({"op": "supersede", "id": "f9", "text": "x"}))
    assert after.sections == before.sections
    assert after.refused == 1


def test_closed_entries_are_evicted_first_then_the_oldest_of_the_longest_section() -> None:
    memory = memory_with("file one " * 10, "file two " * 10)
    memory = memory.merged(operations({"op": "add", "section": "intent", "text": "the goal"}))
    memory = memory.merged(operations({"op": "close", "id": "f2"}))
    full = words(memory.render())
    once = memory.fitted(full - 1, words)
    assert [entry.id for entry in once.sections["files"]] == ["f1"]
    assert once.evicted == 1
    assert "1 older entries were dropped" in once.render()
    twice = memory.fitted(words(once.render()) - 5, words)
    assert twice.sections["files"] == []
    assert [entry.text for entry in twice.sections["intent"]] == ["the goal"]
