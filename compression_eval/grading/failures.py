"""Count what failed in a run, from the summaries of its samples, and describe it in a line each."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from inspect_ai.log import EvalLog, EvalSampleSummary

from compression_eval.errors import one_line

FAILURES = "failures"
"""Key of a log's metadata: what failed, a line for each kind; absent if nothing did."""

NO_KNOWLEDGE = "grader_failed: no criterion of knowledge has a value"
"""Why an answer has no score if the graders judged only its form."""

MAX_REASON = 160
"""Characters of a reason; what follows is cut off."""

MAX_REASONS = 3
"""Reasons that are named; the others are counted."""


@dataclass
class Failed:
    """How many of one kind failed, and why."""

    kind: str
    """What is counted, in the singular."""
    total: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many failed."""
        return self.reasons.total()

    def line(self) -> str:
        """Return how many failed and why, the commonest reason first."""
        head = f"{self.count} of {self.total} {self.kind}{'' if self.total == 1 else 's'} failed"
        if not self.count:
            return head
        common = self.reasons.most_common()
        named = [
            reason if len(common) == 1 else f"{reason} ({n})" for reason, n in common[:MAX_REASONS]
        ]
        if len(common) > MAX_REASONS:
            named.append(f"others ({sum(n for _, n in common[MAX_REASONS:])})")
        return f"{head}: {'; '.join(named)}"


@dataclass
class RunFailures:
    """What failed in one run.

    States are counted for compressions and readings, samples for everything else. What failed for
    a sample is counted once, where it happened: without a state there is no answer to fail.
    """

    samples: int = 0
    graded: int = 0
    """Samples that have a grade."""
    compressions: Failed = field(default_factory=lambda: Failed("compression"))
    answers: Failed = field(default_factory=lambda: Failed("answer"))
    gradings: Failed = field(default_factory=lambda: Failed("grading"))
    readings: Failed = field(default_factory=lambda: Failed("state reading"))
    """States that a model was asked about; one that failed takes no grade from a sample."""
    fetchings: Failed = field(default_factory=lambda: Failed("second answer"))
    """Answers with tools and their gradings; one that failed takes no grade from a sample."""
    errors: Failed = field(default_factory=lambda: Failed("sample"))
    """Samples that ended with an error, or were stopped, before they were scored."""
    mixed: int = 0
    """Replicates whose samples are about two compressions or more."""

    @property
    def share(self) -> float:
        """Share of the samples without a grade, 0 to 1."""
        return (self.samples - self.graded) / self.samples if self.samples else 0.0

    @property
    def any(self) -> bool:
        """Whether anything failed."""
        return (
            self.graded < self.samples
            or self.readings.count + self.fetchings.count + self.mixed > 0
        )

    def judge(self, step: Failed, value: object, reason: str) -> None:
        """Count a sample's last step: a grade if it has values, else a failure of the step."""
        step.total += 1
        if isinstance(value, dict):
            self.graded += 1
        else:
            step.reasons[reason] += 1

    @property
    def cause(self) -> str:
        """What most samples without a grade have in common, in a few words."""
        kinds = [self.compressions, self.answers, self.gradings, self.errors]
        return f"{max(kinds, key=lambda kind: kind.count).kind} failed"

    def lines(self) -> list[str]:
        """Return a line for each kind; samples with errors only where there are some."""
        kinds = [self.compressions, self.answers, self.gradings, self.readings, self.fetchings]
        shown = [kind for kind in kinds if kind.total]
        lines = [kind.line() for kind in (*shown, *([self.errors] if self.errors.count else []))]
        if self.mixed:
            which = "replicate mixes" if self.mixed == 1 else "replicates mix"
            lines.append(
                f"{self.mixed} {which} samples of several compressions: this retry did not find "
                "the states of the log before. Retry that log again with --log-dir FOLDER, the "
                "folder it is in"
            )
        return lines


def run_failures(summaries: Iterable[EvalSampleSummary]) -> RunFailures | None:
    """Count what failed among the samples of one log.

    Args:
        summaries: What `inspect_ai.log.read_eval_log_sample_summaries` returns.

    Returns:
        The counts; None for a run that was not scored (``--no-score``).
    """
    failures = RunFailures()
    states: dict[tuple[object, ...], str] = {}
    read: dict[tuple[object, ...], str] = {}
    ids: dict[tuple[object, ...], set[object]] = {}
    scored = False
    for summary in summaries:
        failures.samples += 1
        failures.errors.total += 1
        scores = summary.scores or {}
        resumed = scores.get(_RESUMED)
        grade, state = resumed or scores.get(_GRADES), scores.get(_STATES)
        scored = scored or grade is not None
        if grade is None or state is None or not (about := state.metadata or {}).get("state_id"):
            if grade is not None or summary.error or summary.limit:
                failures.errors.reasons[_short(summary.error or summary.limit or "no record")] += 1
            continue
        key = tuple(about.get(part) for part in ("fixture", "cut", "state_id"))
        replicate = tuple(about.get(part) for part in ("fixture", "cut", "replicate"))
        ids.setdefault(replicate, set()).add(about["state_id"])
        kind, _, reason = (grade.reason or "").partition(": ")
        if kind == "answer_failed":  # there is none because of an error or a limit of the sample
            stopped = f"stopped by the {summary.limit} limit" if summary.limit else ""
            reason = summary.error or stopped or reason
        failed = kind == "compression_failed"
        states[key] = _short(str(about.get("failure") or about["status"])) if failed else ""
        if failed:
            continue
        reading = (scores[_FACTS].metadata or {}) if _FACTS in scores else {}
        if reading.get("state_reader"):
            why = reading["state_reader_failure"]
            read[key] = _short(why) if why else ""
        again = scores.get(_REFETCH)
        if again and kind not in _NO_ANSWER:
            failures.fetchings.total += 1
            if not isinstance(again.value, dict):
                why = summary.error or (again.reason or "").removeprefix(_REFETCH_FAILED)
                failures.fetchings.reasons[_short(why)] += 1
        if resumed is not None:  # the work itself is scored, no answer is graded
            failures.answers.kind = "continuation"
            failures.judge(failures.answers, resumed.value, _short(reason or kind))
            continue
        failures.answers.total += 1
        if kind in _NO_ANSWER:
            asked = kind == "asked_to_fetch"
            failures.answers.reasons[
                _short(f"asked to fetch with {reason}" if asked else reason)
            ] += 1
            continue
        failures.judge(failures.gradings, grade.value, _short(reason or kind))
    for kind_of, by_state in ((failures.compressions, states), (failures.readings, read)):
        kind_of.total = len(by_state)
        kind_of.reasons.update(filter(None, by_state.values()))
    failures.mixed = sum(len(each) > 1 for each in ids.values())
    return failures if scored or failures.errors.count else None


def failures_by_scores(log: EvalLog) -> RunFailures | None:
    """Count the samples without a grade of a log that holds no samples.

    Inspect counts scores after the reduction of epochs: a grade in one epoch is enough here.

    Returns:
        The counts; None for a run that was not scored.
    """
    results, epochs = log.results, log.eval.config.epochs or 1
    named = {score.scorer: score for score in reversed(results.scores)} if results else {}
    if results is None or not (leading := named.get(_RESUMED) or named.get(_GRADES)):
        return None
    failures = RunFailures(results.total_samples // epochs, leading.scored_samples or 0)
    failures.errors.total = failures.samples
    if missing := failures.samples - failures.graded:
        failures.errors.reasons["no grade; the log keeps no samples that say why"] = missing
    return failures


_GRADES = "six_dimensions"
_RESUMED = "finishing"
_STATES = "compression"
_FACTS = "fact_retention"
_REFETCH = "refetch"
_REFETCH_FAILED = "refetch_failed: "
_NO_ANSWER = ("answer_failed", "asked_to_fetch")


def _short(reason: str) -> str:
    return one_line(reason, MAX_REASON) or "unknown"
