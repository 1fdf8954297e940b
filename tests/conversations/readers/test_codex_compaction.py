"""What Codex went on with after a compaction."""

from pathlib import Path

from tests.conversations.readers.codex_lines import (
    ENVIRONMENT,
    HEAD,
    event,
    line,
    message,
    read,
    tokens,
    typed,
)
from tests.conversations.readers.reading import (
    caveats,
    said,
)


def test_a_compaction_in_undone_turns_is_no_cut(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        *typed("A"),
        *typed("B"),
        line("compacted", {"message": "Summary."}),
        event("thread_rolled_back", num_turns=1),
        *typed("C"),
    )
    assert built.fixture.recorded_compactions == []
    assert any("undone" in caveat for caveat in caveats(built))
    assert not any("before the first" in caveat for caveat in caveats(built))
    assert [text for _, text in said(built)[1:]] == ["A", "C"]


def test_a_compaction_that_cannot_be_read_keeps_what_can_be(tmp_path: Path) -> None:
    built = read(
        tmp_path,
        HEAD,
        ENVIRONMENT,
        *typed("Do it"),
        message("assistant", "Yes."),
        tokens(900),
        line(
            "compacted",
            {
                "message": "",
                "replacement_history": [
                    message("user", "Do it")["payload"],
                    message("developer", "New rules")["payload"],
                    {"type": "compaction", "encrypted_content": "zz"},
                ],
            },
        ),
        event("context_compacted"),
        tokens(70),
        tokens(90),
        message("assistant", "Going on."),
    )
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (4, "opaque", None)
    assert (compaction.tokens_before, compaction.tokens_after) == (900, 70)
    assert compaction.state is not None
    kept, made = compaction.state
    assert kept == 2
    assert not isinstance(made, int)
    assert made.text == "New rules"


def test_a_local_compaction_has_its_summary_as_the_state(tmp_path: Path) -> None:
    summary = (
        "Another language model started to solve this problem and produced a summary\nAll well."
    )
    built = read(
        tmp_path,
        HEAD,
        *typed("Do it"),
        message("user", "You are performing a CONTEXT CHECKPOINT COMPACTION. Summarise."),
        message("assistant", "All well."),
        line(
            "compacted",
            {
                "message": summary,
                "replacement_history": [
                    message("user", "Do it")["payload"],
                    message("user", summary)["payload"],
                ],
            },
        ),
        *typed("Next"),
    )
    assert [text for _, text in said(built)[1:]] == ["Do it", "Next"]
    (compaction,) = built.fixture.recorded_compactions
    assert (compaction.cut, compaction.kind, compaction.summary) == (2, "summary", summary)
    assert compaction.state is not None
    assert compaction.state[0] == 1
    assert len(compaction.state) == 2


def test_an_early_compaction_is_worked_out_from_the_rule(tmp_path: Path) -> None:
    long = "x" * 100_000
    built = read(
        tmp_path,
        HEAD,
        ENVIRONMENT,
        *typed("Forgotten"),
        *typed(long),
        message("assistant", "Much."),
        *typed("Newest"),
        line("compacted", {"message": "The summary."}),
    )
    (compaction,) = built.fixture.recorded_compactions
    assert compaction.state is not None
    shortened, newest, summary = compaction.state
    assert newest == 5
    assert not isinstance(shortened, int)
    assert not isinstance(summary, int)
    assert 79_000 < len(shortened.text) < 81_000
    assert "tokens truncated" in shortened.text
    assert summary.text == "The summary."


def test_where_no_history_was_kept_the_last_20_000_tokens_of_the_user_are(tmp_path: Path) -> None:
    long = "Mind the queue. " * 2_500  # 10,000 tokens, as Codex counts them
    built = read(
        tmp_path,
        HEAD,
        *typed("The very first thing."),
        *(each for n in range(3) for each in typed(f"{n}: {long}")),
        line("compacted", {"message": "Summary."}),
        message("assistant", "Going on."),
    )
    (compaction,) = built.fixture.recorded_compactions
    assert compaction.state is not None
    kept = [each if isinstance(each, int) else each.text[:2] for each in compaction.state]
    texts = [built.fixture.messages[e].text[:2] if isinstance(e, int) else e for e in kept]
    assert "Th" not in texts
    assert [text for text in texts if text in ("0:", "1:", "2:")][-1] == "2:"
    size = sum(
        len(built.fixture.messages[e].text if isinstance(e, int) else e.text)
        for e in compaction.state
    )
    assert size < 20_000 * 4 * 1.1
