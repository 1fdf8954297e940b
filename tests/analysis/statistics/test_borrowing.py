"""A measure without any spread is judged by that of others, unless it is known exactly."""

import math

import pytest

from compression_eval.analysis.statistics.borrowing import known_exactly, with_borrowed_spread
from compression_eval.analysis.statistics.intervals import Difference, Spread
from compression_eval.analysis.statistics.verdicts import judge


def _difference(estimate: float, here: Spread | None) -> Difference:
    return Difference(
        base=3.0, new=3.0 + estimate, probes=9, fixtures=3, states=(9, 9), here=here, elsewhere=None
    )


FLAT = Spread(0.0, math.inf)
THRESHOLDS = {"a": 0.3, "b": 0.3, "share": 0.06}


def test_the_widest_error_is_lent_in_shares_of_the_threshold() -> None:
    given = {
        "a": _difference(0.1, Spread(0.05, 12)),
        "b": _difference(0.0, FLAT),
        "share": _difference(0.0, Spread(0.02, 7)),
    }
    found, borrowers = with_borrowed_spread(given, THRESHOLDS)
    assert borrowers == {"b"}
    lent = found["b"].here
    assert lent is not None
    assert lent.error == pytest.approx(0.1)
    assert lent.freedom == 7
    assert (found["a"], found["share"]) == (given["a"], given["share"])


def test_a_ceiling_is_no_change_where_the_others_can_be_told_and_not_where_they_cannot() -> None:
    for error, expected in ((0.05, "no change"), (0.4, "cannot tell")):
        given = {"a": _difference(0.0, Spread(error, 12)), "b": _difference(0.0, FLAT)}
        found, _ = with_borrowed_spread(given, THRESHOLDS)
        assert judge(found, THRESHOLDS)["b"].verdict == expected


def test_where_nothing_varies_nothing_is_borrowed() -> None:
    given = {"a": _difference(0.0, FLAT), "b": _difference(0.0, None)}
    found, borrowers = with_borrowed_spread(given, THRESHOLDS)
    assert found == given
    assert not borrowers
    assert judge(found, THRESHOLDS)["a"].verdict == "cannot tell"


def test_what_is_exact_borrows_nothing_and_needs_no_second_run() -> None:
    given = {"a": _difference(1.0, None), "b": _difference(0.2, Spread(0.1, 5))}
    exact = known_exactly(given, {"a"})
    found, borrowers = with_borrowed_spread(exact, THRESHOLDS, {"a"})
    assert not borrowers
    judged = judge(found, THRESHOLDS, same_every_time={"a"})
    assert judged["a"].verdict == "better"
    assert judge(given, THRESHOLDS)["a"].verdict == "cannot tell"
