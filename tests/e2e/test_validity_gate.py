"""What counts as shrinking is an argument of the task; a state that does not has no score."""

from pathlib import Path
from typing import Any

import pytest

from compression_eval.arguments import TaskArguments, checked
from compression_eval.fixtures.errors import DataError
from tests.e2e import small


@pytest.mark.parametrize("value", [-0.1, 1, 1.5, True, "half", None])
def test_what_is_not_a_share_is_refused(tiny: Path, value: Any) -> None:
    with pytest.raises(DataError) as caught:
        checked(TaskArguments(fixtures=str(tiny), min_removed=value))
    assert str(caught.value) == (
        f"min_removed: {value!r} is not a share of at least 0 and less than 1"
    )


@pytest.mark.usefixtures("scripts")
def test_the_same_compression_passes_or_fails(tiny: Path, log_dir: Path) -> None:
    arm: dict[str, Any] = {"compressor": "tail", "compressor_args": {"tail_tokens": 60}}
    log = small.run(log_dir, tiny, **arm)
    assert small.means(log)["failed_states"] == 0
    assert (log.eval.metadata or {})["min_removed"] == 0.1
    log = small.run(log_dir, tiny, min_removed=0.99, **arm)
    assert small.means(log)["failed_states"] == small.EPOCHS
    for sample in small.samples(log, "error"):
        assert small.state(sample).status == "not_smaller"
        scores = sample.scores or {}
        assert scores["six_dimensions"].reason == "compression_failed: not_smaller"
        assert (scores["compression"].metadata or {})["status"] == "not_smaller"
        told = scores["compression"].explanation or ""
        assert "Status: not_smaller: " in told
        assert "at least 99.0% is asked for (min" in told
        stages = {row["stage"] for row in (scores["fact_retention"].metadata or {})["facts"]}
        assert stages == {"compression_failed"}
