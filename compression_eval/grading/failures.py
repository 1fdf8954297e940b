"""Count what failed in a run, from the summaries of its samples, and describe it in a line each.

Scorers mark a sample that has no score with a reason; the part before the colon is counted.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from inspect_ai.log import EvalSampleSummary

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

    def add(self, reason: str | None) -> None:
        """Count one; it failed if it has a reason."""
        self.total += 1
        if reason is not None:
            self.reasons[one_line(reason, MAX_REASON) or "unknown"] += 1

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
        apart = self.readings.count + self.fetchings.count + self.mixed
        return self.graded < self.samples or apart > 0

    def lines(self) -> list[str]:
        """Return a line for each kind; samples with errors only where there are some."""
        kinds = [self.compressions, self.answers, self.gradings, self.readings, self.fetchings]
        lines = [kind.line() for kind in kinds if kind.total]
        if self.errors.count:
            lines.append(self.errors.line())
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
    compressed: dict[tuple[object, ...], str | None] = {}
    read: dict[tuple[object, ...], str | None] = {}
    states: defaultdict[tuple[object, ...], set[object]] = defaultdict(set)
    scored = False
    for summary in summaries:
        failures.samples += 1
        scores = summary.scores or {}
        resumed = scores.get("finishing")
        grade, state = resumed or scores.get("six_dimensions"), scores.get("compression")
        scored = scored or grade is not None
        about = (state.metadata or {}) if state else {}
        if grade is None or not about.get("state_id"):
            ended = summary.error or summary.limit
            failures.errors.add(None if grade is None and not ended else ended or "no record")
            continue
        failures.errors.add(None)
        *place, state_id = (about.get(part) for part in ("fixture", "cut", "state_id"))
        states[*place, about.get("replicate")].add(state_id)
        kind, _, reason = (grade.reason or "").partition(": ")
        if kind == "compression_failed":
            compressed[*place, state_id] = str(about.get("failure") or about["status"])
            continue
        compressed[*place, state_id] = None
        facts = scores.get("fact_retention")
        if facts and (reading := facts.metadata or {}).get("state_reader"):
            read[*place, state_id] = reading["state_reader_failure"] or None
        unanswered = kind in ("answer_failed", "asked_to_fetch")
        again = scores.get("refetch")
        if again and not unanswered:
            why = summary.error or (again.reason or "").removeprefix("refetch_failed: ")
            failures.fetchings.add(None if isinstance(again.value, dict) else why)
        if kind == "answer_failed":  # perhaps because of an error or a limit of the sample
            stopped = f"stopped by the {summary.limit} limit" if summary.limit else ""
            reason = summary.error or stopped or reason
        elif kind == "asked_to_fetch":
            reason = f"asked to fetch with {reason}"
        step = failures.gradings
        if resumed is not None:  # the work itself is scored, no answer is graded
            step, step.kind = failures.answers, "continuation"
        elif unanswered:
            step = failures.answers
        else:
            failures.answers.add(None)
        graded = isinstance(grade.value, dict)
        failures.graded += graded
        step.add(None if graded else reason or kind)
    for kind_of, reasons in ((failures.compressions, compressed), (failures.readings, read)):
        for why_not in reasons.values():
            kind_of.add(why_not)
    failures.mixed = sum(len(each) > 1 for each in states.values())
    return failures if scored or failures.errors.count else None
