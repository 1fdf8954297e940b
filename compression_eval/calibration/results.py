"""From logs of the calibration task to one result per grader."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from zipfile import BadZipFile

from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log
from inspect_ai.scorer import Score
from pydantic import ValidationError

from compression_eval.calibration.cases import Case, GraderScores, Reference, compared
from compression_eval.calibration.task import MARK
from compression_eval.calibration.traps import sprung
from compression_eval.fixtures.errors import DataError, NotFoundError

SCORER = "grader_calibration"


@dataclass
class GraderResult:
    """What one grader, or the median of a panel, made of a log's answers."""

    name: str
    log: str
    """The log's path."""
    parameters: dict[str, object] = field(default_factory=dict)
    """Generation settings that its role was given."""
    version: str = ""
    """Version of the task: graders are comparable where it is the same."""
    languages: set[str] = field(default_factory=set)
    """Languages of the rubric, swapped ones left out."""
    contexts: set[str] = field(default_factory=set)
    """Values of ``grader_context``."""
    rubrics: dict[str, str] = field(default_factory=dict)
    """Digest of the rubric by language."""
    cases: list[Case] = field(default_factory=list)
    after_rules: list[Case] = field(default_factory=list)
    """As `cases`, with the scores that a real run would count; only where it has them."""
    failures: int = 0
    """Answers, variants included, that it gave no usable reply to."""

    @property
    def originals(self) -> list[Case]:
        """The answers as they stand in the set."""
        return [case for case in self.cases if case.original]

    def traps(self) -> dict[str, list[str]]:
        """Return the ids of the answers it fell for, by kind; kinds without a trap left out."""
        result: dict[str, list[str]] = {}
        for case in self.originals:
            fell = sprung(case.reference.kind, case.scores, case.reference.scores)
            if fell is not None:
                result.setdefault(case.reference.kind, [])
                if fell:
                    result[case.reference.kind].append(case.reference.item)
        return result

    def trapped(self, kind: str) -> int:
        """Return how many answers with a trap of this kind have a value where it aims."""
        return sum(
            sprung(case.reference.kind, case.scores, case.reference.scores) is not None
            for case in self.originals
            if case.reference.kind == kind
        )


def pairs(cases: Sequence[Case], key: str) -> tuple[list[float], list[float]]:
    """Return a grader's scores and the reference's for one key, answer by answer."""
    both = [compared(case) for case in cases]
    return [given[key] for given, _ in both], [right[key] for _, right in both]


def read_results(paths: Sequence[str]) -> list[GraderResult]:
    """Return one result for each grader of each log; for a panel its median first.

    Args:
        paths: Logs, or folders of logs in which those of other evals are left out.

    Raises:
        DataError: There is none, or one that is named is no finished log of this task.
    """
    results: list[GraderResult] = []
    for log in _logs(paths):
        results.extend(_results(log))
    return results


def _logs(paths: Sequence[str]) -> Iterator[EvalLog]:
    for path in paths:
        folder = Path(path).is_dir()
        if not folder and "://" not in path and not Path(path).is_file():
            raise NotFoundError(f"{path}: no such file or folder")
        names = [info.name for info in list_eval_logs(path, descending=False)] if folder else [path]
        headers = [(name, _read(name, header_only=True)) for name in names]
        ours = [name for name, header in headers if MARK in (header.eval.metadata or {})]
        if not ours:
            what = "no log of the grader calibration" + (" in this folder" if folder else "")
            raise DataError(f"{path}: {what}; make one: inspect eval tasks/grader_calibration.py")
        for name in ours:
            log = _read(name, header_only=False)
            if log.status == "started":
                raise DataError(f"{name}: the run is still going on, or was killed")
            yield log


def _read(name: str, *, header_only: bool) -> EvalLog:
    try:
        return read_eval_log(name, header_only=header_only)
    except (ValueError, OSError, KeyError, BadZipFile) as error:
        text = " ".join(str(error).split())[:200]
        raise DataError(f"{name}: not a log of Inspect ({text})") from error


def _results(log: EvalLog) -> list[GraderResult]:
    found: dict[int, GraderResult] = {}
    scored = list(_scored(log))
    # Each log has one panel: the graders stand in the same order in every sample.
    names = next((_graders(score) for _, score in scored if _graders(score)), [])
    if not names:
        raise DataError(f"{log.location}: no answer was graded")
    if len(names) > 1:
        found[-1] = _empty(log, f"median of {len(names)} graders", {})
    for number, grader in enumerate(names):
        found[number] = _empty(log, grader.model, grader.parameters)
    for sample, score in scored:
        reference = _reference(log, sample)
        metadata = score.metadata or {}
        for number, result in found.items():
            _note_settings(result, reference, metadata)
            if number < 0 or len(names) == 1:
                _add(result, reference, metadata.get("scores"))
                result.after_rules.append(Case(reference, metadata.get("after_rules") or {}))
            else:
                graders = _graders(score)
                _add(result, reference, graders[number].scores if number < len(graders) else {})
    return list(found.values())


def _empty(log: EvalLog, name: str, parameters: Mapping[str, object]) -> GraderResult:
    return GraderResult(name, log.location, dict(parameters), str(log.eval.task_version))


def _add(result: GraderResult, reference: Reference, scores: Mapping[str, float] | None) -> None:
    result.cases.append(Case(reference, scores or {}))
    result.failures += not scores


def _note_settings(
    result: GraderResult, reference: Reference, metadata: Mapping[str, object]
) -> None:
    if reference.variant == "language_swapped":
        return
    language = str(metadata.get("language", ""))
    result.languages.add(language)
    result.contexts.add(str(metadata.get("grader_context", "")))
    result.rubrics[language] = str(metadata.get("rubric_digest", ""))


def _scored(log: EvalLog) -> Iterator[tuple[EvalSample, Score]]:
    for sample in log.samples or []:
        score = (sample.scores or {}).get(SCORER)
        if score is not None:
            yield sample, score


def _graders(score: Score) -> list[GraderScores]:
    found = (score.metadata or {}).get("graders")
    return [GraderScores.model_validate(item) for item in found] if found else []


def _reference(log: EvalLog, sample: EvalSample) -> Reference:
    try:
        return Reference.model_validate(sample.metadata)
    except ValidationError as error:
        raise DataError(
            f"{log.location}: sample {sample.id}: metadata: of another version"
        ) from error


def mean_moved(shifts: Sequence[float]) -> float:
    """Return the mean absolute difference, in points; NaN if there is none."""
    return statistics.fmean(map(abs, shifts)) if shifts else float("nan")
