"""The scorer that compares the files an answer names with those the tool calls touched.

It calls no model. For each part of the answer key (created, modified, read) it counts which files
the answer names, and which it names that do not exist in the history.
"""

import math
import posixpath
from dataclasses import asdict, dataclass

from inspect_ai.scorer import Metric, Score, Scorer, scorer
from inspect_ai.solver import TaskState

from compression_eval.file_ops.naming import named_files
from compression_eval.fixtures.banks import Probe
from compression_eval.grading.metrics import over_conversations
from compression_eval.record import Recorded, scoring
from compression_eval.text.markdown import escaped, table

KEYS = ("artifact_precision", "artifact_recall")
"""Keys of the score, on every sample that has one."""

_MAX_SHOWN = 40
_GONE = ("deleted", "former", "temporary")
"""Outcomes that no key lists, so that naming such a file is neither right nor wrong."""


@dataclass
class KindFinding:
    """One part of the key: the files that the answer names, and those it does not."""

    named: list[str]
    missed: list[str]


@dataclass
class FileFindings:
    """The files of an answer, judged."""

    kinds: dict[str, KindFinding]
    """The parts of the key that list something."""
    others: dict[str, str]
    """Named files that are not in the key, with what the history did to them."""
    made_up: list[str] | None
    """Names that the history does not hold; None if its files were not recorded."""
    ambiguous: list[str]
    """Shortened names that fit several files."""
    not_judged: list[str]
    """Named files that are gone, or that the question itself names."""

    @property
    def recall(self) -> float:
        """Share of the key's files that the answer names; a file in two parts counts once."""
        named = {path for kind in self.kinds.values() for path in kind.named}
        missed = {path for kind in self.kinds.values() for path in kind.missed}
        return len(named) / len(named | missed) if named or missed else math.nan

    @property
    def precision(self) -> float:
        """Share of the named files that are in the key; NaN if the answer names none."""
        right = {path for kind in self.kinds.values() for path in kind.named}
        wrong = len(self.others) + len(self.made_up or [])
        return len(right) / (len(right) + wrong) if right or wrong else math.nan


def key_of(probe: Probe) -> dict[str, list[str]]:
    """Return the parts of a probe's key that list files; empty if it lists none."""
    key = probe.answer_key
    parts = {"created": key.files_created, "modified": key.files_modified, "read": key.files_read}
    return {
        kind: list(dict.fromkeys(map(posixpath.normpath, paths)))
        for kind, paths in parts.items()
        if paths
    }


def file_findings(probe: Probe, answer: str, history: dict[str, str]) -> FileFindings:
    """Judge the files that an answer names.

    Args:
        probe: A probe whose key lists files.
        answer: What the model said.
        history: Every file that the history names, with what became of it; empty if not recorded:
            then no name counts as made up, and names outside the key count as others.
    """
    key = key_of(probe)
    in_key = {path for paths in key.values() for path in paths}
    known = in_key | set(history)
    named = named_files(answer, known)
    asked = named_files(probe.question, known).known
    kinds = {
        kind: KindFinding(
            named=[path for path in paths if path in named.known],
            missed=[path for path in paths if path not in named.known],
        )
        for kind, paths in key.items()
    }
    outside = [path for path in named.known if path not in in_key]
    not_judged = [path for path in outside if path in asked or history.get(path) in _GONE]
    others = {path: history.get(path, "") for path in outside if path not in not_judged}
    if not history:
        others |= dict.fromkeys(named.unknown, "")
    made_up = named.unknown if history else None
    return FileFindings(kinds, others, made_up, named.ambiguous, not_judged)


def artifact_files_metrics() -> dict[str, list[Metric]]:
    """Return the metrics of every key: the mean over conversations, and its error."""
    return {key: [over_conversations()] for key in KEYS}


@scorer(metrics=artifact_files_metrics())
def artifact_files() -> Scorer:
    """Compare the files that an artifact answer names with the probe's answer key.

    ``artifact_recall`` is the share of the key's files (created, modified, read) that the answer
    names, ``artifact_precision`` the share of the files it names that are in the key (both 0 to
    1). Both are NaN for probes of other types and for keys without files; precision also where
    the answer names no file, and both without an answer. Names that stand nowhere in the history
    are listed as made up and count against precision. Calls no model.
    """

    async def score(sample: Recorded, _: TaskState) -> Score:
        if failure := sample.compression_failure:
            return Score.unscored(reason=failure)
        if sample.probe.type != "artifact" or not key_of(sample.probe):
            return _not_measured("no artifact probe with files in its answer key")
        if sample.answer_text is None:
            return _not_measured(sample.answer_failure or "no answer")
        findings = file_findings(sample.probe, sample.answer_text, sample.record.files)
        metadata = asdict(findings)
        shares = zip(KEYS, (findings.precision, findings.recall), strict=True)
        return Score(
            value={key: share if math.isnan(share) else round(share, 3) for key, share in shares},
            answer=sample.answer_text,
            explanation=_explanation(findings),
            metadata={**metadata.pop("kinds"), **metadata},
        )

    return scoring(score)


def _not_measured(reason: str) -> Score:
    return Score(value=dict.fromkeys(KEYS, math.nan), reason=reason, explanation=escaped(reason))


def _explanation(findings: FileFindings) -> str:
    rows = [
        [kind, str(len(each.named + each.missed)), _listed(each.named), _listed(each.missed)]
        for kind, each in findings.kinds.items()
    ]
    others = [f"{path} ({what})" if what else path for path, what in findings.others.items()]
    notes = {
        "Named, but not in the key": others,
        "Made up, nowhere in the history": findings.made_up,
        "Fits several files, not counted": findings.ambiguous,
        "Gone by now or named by the question, not counted": findings.not_judged,
    }
    lines = [f"{label}: {escaped(_listed(paths))}." for label, paths in notes.items() if paths]
    if findings.made_up is None:
        unknown = "Whether names are made up is not known: the log holds no list of files."
        lines.insert(1 if others else 0, unknown)
    return "\n\n".join([table(["Files", "In the key", "Named", "Missed"], rows), *lines])


def _listed(paths: list[str]) -> str:
    shown = ", ".join(paths[:_MAX_SHOWN])
    return shown + (f" and {len(paths) - _MAX_SHOWN} more" if len(paths) > _MAX_SHOWN else "")
