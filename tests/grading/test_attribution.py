"""On strategies spoilt on purpose, facts are attributed to the stage at which they were lost."""

import anyio
import pytest

from benchmarks.attribution import attributions, figures

SHORT = ["feature-impl", "cron-config", "401-debug", "zh-log-rotation", "pr-triage"]
CORRUPTIONS = ("truncated", "section", "stale")


def test_on_one_fixture() -> None:
    found = anyio.run(attributions, ["zh-log-rotation"])
    assert {item.corruption for item in found} == set(CORRUPTIONS)
    wrong = {(item.corruption, item.fact) for item in found if not item.correct}
    assert wrong == {("truncated", "PROTECTED")}, "the one coincidence that is known"


@pytest.mark.slow
def test_on_the_short_fixtures(capsys: pytest.CaptureFixture[str]) -> None:
    found = anyio.run(attributions, SHORT)  # the benchmark has all of them, in two minutes
    counted = figures(found)
    with capsys.disabled():
        for name, (right, total) in counted.items():
            print(f"\nattribution, {name}: {right} of {total} right")  # noqa: T201
    assert set(counted) == set(CORRUPTIONS)
    for name, (right, total) in counted.items():
        assert total >= 20, f"{name}: too few affected facts to say anything"
        assert right / total >= 0.95, name
