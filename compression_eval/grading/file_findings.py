"""Compare the files that an answer names with the answer key of its probe."""

import math
import posixpath
from dataclasses import dataclass, field

from compression_eval.file_ops.naming import named_files
from compression_eval.fixtures.banks import Probe

KINDS = ("created", "modified", "read")
_GONE = ("deleted", "former", "temporary")
"""What a key has no place for, so that naming it is neither right nor wrong."""


@dataclass
class KindFinding:
    """One part of the key: the files that the answer names, and those it does not."""

    named: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)


@dataclass
class FileFindings:
    """The files of an answer, judged.

    Attributes:
        kinds: The parts of the key that hold something.
        others: Named files that are not in the key, with what the history did to them.
        made_up: Names that stand nowhere in the history; None if its files were not recorded.
        not_judged: Named files that are gone, or that the question itself names.
        ambiguous: Shortened names that fit several files.
    """

    kinds: dict[str, KindFinding]
    others: dict[str, str] = field(default_factory=dict)
    made_up: list[str] | None = None
    not_judged: list[str] = field(default_factory=list)
    ambiguous: list[str] = field(default_factory=list)

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
    parts = {
        "created": key.files_created,
        "modified": key.files_modified,
        "read": key.files_read,
    }
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
        history: Every file that the history names, with what became of it; empty if that was not
            recorded: then nothing is called made up, and names outside of the key count as others.
    """
    key = key_of(probe)
    in_key = {path for paths in key.values() for path in paths}
    known = in_key | set(history)
    named = named_files(answer, known)
    asked = set(named_files(probe.question, known).known)
    findings = FileFindings(
        kinds={
            kind: KindFinding(
                named=[path for path in paths if path in named.known],
                missed=[path for path in paths if path not in named.known],
            )
            for kind, paths in key.items()
        },
        made_up=list(named.unknown) if history else None,
        ambiguous=named.ambiguous,
    )
    for path in named.known:
        if path in in_key:
            continue
        if path in asked or history.get(path) in _GONE:
            findings.not_judged.append(path)
        else:
            findings.others[path] = history.get(path, "")
    if not history:
        findings.others.update(dict.fromkeys(named.unknown, ""))
    return findings
