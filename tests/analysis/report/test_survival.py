"""By whose word facts survive: the reader's where there is one, else the look-up's."""

from typing import Any

from pandas import DataFrame

from compression_eval.analysis.report.figures import Share, survival


def fact(in_state: bool | None, read: str | None, stage: str = "unused") -> dict[str, Any]:
    return {
        "stage": stage,
        "in_state": in_state,
        "in_state_read": read,
        "age_share": 0.9,
        "cycles": 1.0,
    }


def test_the_readers_word_goes_before_the_look_up() -> None:
    facts = [
        fact(False, "stated"),
        fact(True, "absent", "dropped"),
        fact(None, "derivable"),
        fact(True, None),
        fact(True, "stated"),
        fact(True, "stated", "compression_failed"),
    ]
    found = survival(DataFrame(facts))
    assert found.by_cycle == {"1": Share(4, 6)}
    assert found.read == 4
    # Of three that were both read and looked up one is the same.
    assert found.fact_agreement == 1 / 3


def test_without_a_reader_there_is_nothing_to_agree_on() -> None:
    found = survival(DataFrame([fact(True, None), fact(False, None, "lost")]))
    assert (found.by_cycle, found.read, found.fact_agreement) == ({"1": Share(1, 2)}, 0, None)
