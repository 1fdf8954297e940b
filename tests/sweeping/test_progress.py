"""The time left is of the right order, and is told with and without a terminal."""

import heapq
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from compression_eval import terminal
from compression_eval.sweeping import progress
from compression_eval.sweeping.progress import Pace
from compression_eval.terminal import duration
from tests.e2e import small
from tests.e2e.scripted import ANSWERS, GRADES, Call, Script, Scripts, proper_answer, proper_grading
from tests.sweeping.commanding import run, scripted_models, settings_file

ARMS = {"full": 2.0, "none": 4.0, "anchored": 9.0, "pi": 14.0}
"""Seconds of a sample; those of `pi` also wait for a compression."""


def simulated(at_once: int, samples: int, seed: int) -> Iterator[tuple[bool, float | None, float]]:
    """Yield at each end of a sample if all arms were seen, the time left as told, and as it was."""
    chance = random.Random(seed)
    tasks = {name: (name, "model") for name in ARMS}
    pace = Pace(dict.fromkeys(tasks.values(), samples))
    waiting = [name for _ in range(samples) for name in ARMS]
    chance.shuffle(waiting)
    running: list[tuple[float, int, str]] = []
    told: list[tuple[float, bool, float | None]] = []
    now = 0.0
    for number in range(len(waiting) + at_once):
        if len(running) == at_once or number >= len(waiting):
            if not running:
                break
            now, sample, _ = heapq.heappop(running)
            pace.end(str(sample), now, done=True)
            told.append((now, pace.seen_all, pace.seconds_left(now)))
        if number < len(waiting):
            seconds = ARMS[waiting[number]] * chance.uniform(0.7, 1.4)
            pace.start(tasks[waiting[number]], str(number), now)
            heapq.heappush(running, (now + seconds, number, waiting[number]))
    yield from ((seen, left, now - when) for when, seen, left in told)


@pytest.mark.parametrize("at_once", [1, 10, 100])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_time_left_is_of_the_right_order_from_the_first_ones_on(
    at_once: int, seed: int
) -> None:
    found = list(simulated(at_once, 60, seed))
    assert [left for _, left, _ in found[: progress.MIN_FINISHED - 1]] == [None, None]
    for seen, left, true in found[progress.MIN_FINISHED : -5]:
        assert left is not None
        # Of arms that were not seen yet it is only said how long it takes at least.
        assert (true / 4 if seen else 0) < left < true * 2
    middle = [(left, true) for _, left, true in found[len(found) // 2 : -30]]
    assert all(left is not None and true / 2.2 < left < true * 1.5 for left, true in middle)
    assert found[-1][1] == 0


def test_samples_that_are_tried_again_stay_to_be_done() -> None:
    pace = Pace({("a", "m"): 4})
    for number in range(6):
        pace.start(("a", "m"), str(number), number * 10.0)
        pace.end(str(number), number * 10.0 + 10, done=number % 2 == 0)
    assert pace.seconds_left(60.0) == pytest.approx(1 * 10 * 60 / 30)


def test_times_in_words() -> None:
    words = [duration(seconds) for seconds in (0, 44, 89, 100, 3000, 20_000)]
    assert words == ["10 s", "40 s", "90 s", "2 min", "50 min", "5.6 h"]


def lines(errors: str) -> list[str]:
    return [line for line in errors.splitlines() if re.match(r"\d+ of \d+ samples(, |$)", line)]


@pytest.mark.slow
def test_without_a_terminal_there_are_lines(
    scripts: Scripts, tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "LINE_SECONDS", (0.2,))
    scripts[ANSWERS].seconds = 0.15
    file = str(settings_file(tmp_path, tiny, **scripted_models(), epochs=3))
    ended = run("sweep", file, "--max-samples", "1", "-G", "max_connections=1")
    assert ended.code == 0, ended.errors
    said = lines(ended.errors)
    total = 2 * small.PROBES * 3
    assert said[0] == f"0 of {total} samples, 0 under way"
    assert len(said) > 3
    assert any(" left" in line for line in said)
    assert f"done: tail (tail_tokens=60), {total // 2} samples" in ended.errors
    assert "\x1b" not in ended.errors
    again = run("sweep", file)
    assert lines(again.errors)[0] == f"{total} of {total} samples", "no time is left"


@pytest.mark.slow
def test_a_dead_endpoint_is_said_once_and_retries_can_be_bounded(
    scripts: Scripts, tiny: Path, tmp_path: Path
) -> None:
    def back_after(calls: int) -> Callable[[Call], str]:
        def reply(call: Call) -> str:
            if call.number < calls:
                raise ConnectionRefusedError("nothing listens there")
            return proper_grading(call)

        return reply

    scripts[GRADES].reply = back_after(12)
    file = str(settings_file(tmp_path, tiny, **scripted_models()))
    waited = run("sweep", file)
    assert waited.code == 0, waited.errors
    assert waited.errors.count("waiting for scripted/grades (grader)") == 1
    assert "--max-retries N or --timeout SECONDS" in waited.errors
    assert "go on later with the same command" in waited.errors

    scripts[GRADES] = Script(proper_grading)
    scripts[ANSWERS] = Script(back_after(10**6))
    ended = run("sweep", file, "--fresh", "--max-retries", "1", "--retry-attempts", "1")
    assert ended.code != 0
    assert "waiting for" not in ended.errors
    total = small.PROBES * 2
    # Two arms, each taken up once more, and every call tried twice.
    assert len(scripts[ANSWERS].calls) == 2 * total * 2 * 2
    assert f"not done: tail (tail_tokens=60), {total} of {total} samples failed: " in ended.errors
    assert "the same command takes up what is missing" in ended.errors
    assert "facts kept" not in ended.output, "there is nothing to put into a table"
    scripts[ANSWERS] = Script(proper_answer)
    assert run("sweep", file, "--log-dir", str(tmp_path / "sweep-2")).code == 0
