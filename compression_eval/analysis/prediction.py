"""Does what a state tells, when it is asked, predict the work that continues from it?

Logs of the task `resumption` say which constraints an agent kept and whether it solved its tasks;
logs of the task `compression` say what states of the same arms at the same cuts hold, and what they
answer to the probes that these constraints name. `joined` brings them together, a row for each
constraint and one for each piece of work; the sections ask three things of the rows: is a
constraint broken more often when its fact is not in the state, does the answer to its probe tell
which are kept, and does a better score of a state go with better work on the same task.

All intervals are over tasks, each drawn with everything that was tried on it.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score

from compression_eval.analysis.arms import strategy_names
from compression_eval.analysis.columns import FACTS
from compression_eval.analysis.comparison.measures import shown_p
from compression_eval.analysis.comparison.sides import CONTROLS
from compression_eval.analysis.frames import read_rows
from compression_eval.analysis.logs import (
    Log,
    header_of,
    is_folder,
    is_ours,
    names_in,
    one_per_run,
)
from compression_eval.analysis.statistics.intervals import (
    LEVEL,
    ArmValues,
    Observation,
    paired_difference,
)
from compression_eval.analysis.statistics.significance import holm
from compression_eval.compressors.names import calls_model
from compression_eval.errors import DataError
from compression_eval.fixtures.digests import digest
from compression_eval.grading.rubric import KNOWLEDGE
from compression_eval.resumption.scoring import MARK, Outcome
from compression_eval.text.printable import MAX_CELL, printable
from compression_eval.text.tables import Section, Table

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray

    Numbers = NDArray[float64]

MIN_TASKS = 6
"""With fewer, no interval over tasks is given."""
_DRAWS = 4_000
_SEED = 0

OF_FACTS: Mapping[str, str] = {
    "in_state": "in the state, by look-up",
    "in_state_read": "in the state, by its reader",
    "answered": "its probe is answered",
    "knowledge": "knowledge of that answer",
}
"""What may tell of one fact, each 0 to 1 but knowledge (0 to 5)."""

OF_STATES: Mapping[str, str] = {
    "own_facts": "the task's facts in the state",
    "survival": "all facts asked in the state",
    "state_knowledge": "knowledge of the state",
}
"""What may tell of a state; the first by the reader where there is one, else by look-up."""

COSTS: Mapping[str, str] = {
    "tokens_used": "tokens",
    "turns": "turns",
    "files_read_again": "read again",
    "commands_run_again": "run again",
    "questions": "questions",
}


@dataclass
class Work:
    """What one agent made of one task."""

    task: str
    fixture: str
    unit: str
    """The fixture at the cut."""
    arm: str
    strategy: str
    run: str
    """Who did it: the model and the epoch."""
    message: str
    """``recorded`` or ``written``."""
    solved: float
    costs: Mapping[str, float]
    constraints: Sequence[Mapping[str, Any]]
    """``probe``, ``kind``, ``outcome``, ``in_state``, and the values of `OF_FACTS`."""
    told: Mapping[str, float] = field(default_factory=dict)
    """The values of `OF_STATES`; missing where nothing is known."""

    @property
    def kept(self) -> float:
        """The share of the constraints that were kept; NaN without constraints."""
        outcomes = [each["outcome"] for each in self.constraints]
        return outcomes.count("kept") / len(outcomes) if outcomes else math.nan


@dataclass(frozen=True)
class Joined:
    """The work and what is known of the states that it continued from."""

    works: Sequence[Work]
    unscored: Mapping[str, int]
    """How many samples have no score, by reason."""
    asked: int
    """How many constraints' probes were asked of a state of the same arm."""
    other_states: int
    """How many works continued from a state of another size than the one that was asked."""


def joined(paths: Sequence[str]) -> Joined:
    """Return the work in some logs, with what other logs among them tell of its states.

    Raises:
        DataError: A log cannot be read or is missing, or none is of the task `resumption`.
    """
    names = [name for path in paths for name in (names_in(path) if is_folder(path) else [path])]
    logs = [header_of(name) for name in dict.fromkeys(names)]
    logs = one_per_run([log for log in logs if log.header.status != "started"])
    resumed = [log for log in logs if MARK in (log.header.eval.metadata or {})]
    if not resumed:
        raise DataError(
            f"{', '.join(paths)}: no log of the task resumption; run tasks/resumption.py first"
        )
    told = _told([log for log in logs if is_ours(log.header)])
    works: list[Work] = []
    unscored: Counter[str] = Counter()
    other_states = 0
    for log, arm in zip(resumed, _arm_names(resumed), strict=True):
        for sample in log.samples():
            score = (sample.scores or {}).get("finishing")
            if score is None or not isinstance(score.value, dict):
                unscored[(score.reason if score else None) or "not scored"] += 1
                continue
            metadata = sample.metadata or {}
            known = told.get(_place(log, metadata.get("fixture"), metadata.get("cut")))
            works.append(_work(log, arm, sample, score, known))
            other_states += known is not None and _size(sample) not in known.sizes
    works.sort(key=lambda work: (work.task, work.arm, work.run))  # limits depend on the order
    asked = sum("answered" in fact for work in works for fact in work.constraints)
    return Joined(works, unscored, asked, other_states)


@dataclass
class _Told:
    """What logs tell of the states of one arm at one cut; of each value, all that was measured."""

    facts: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """The values of `OF_FACTS` by probe."""
    sizes: set[float] = field(default_factory=set)
    """Tokens of the states."""

    def add(self, probe: str, size: float, knowledge: float, facts: Sequence[Any]) -> None:
        """Take what one answer to a probe tells."""
        self.sizes.add(size)
        own = self.facts.setdefault(probe, {name: [] for name in OF_FACTS})
        own["knowledge"].append(knowledge)
        words: list[str | None] = [fact["in_state_read"] for fact in facts]
        read = {
            "in_state": [fact["in_state"] for fact in facts],
            "in_state_read": [None if word is None else word != "absent" for word in words],
            "answered": [_answered(fact) for fact in facts],
        }
        for name, found in read.items():
            own[name] += [] if None in found or not found else [float(all(found))]

    def of(self, probe: str) -> dict[str, float]:
        """Return the means of what is known of a probe."""
        return {name: _mean(values) for name, values in self.facts.get(probe, {}).items()}

    def of_state(self) -> dict[str, float]:
        """Return what is known of the state: means over its probes, each counting the same."""
        every = [self.of(probe) for probe in self.facts]
        return {
            "survival": _mean([_best(each) for each in every]),
            "state_knowledge": _mean([each["knowledge"] for each in every]),
        }


def _answered(fact: Mapping[str, Any]) -> bool | None:
    word: str | None = fact["in_answer_read"]
    looked_up: bool | None = fact["in_answer"]
    return looked_up if word is None else word == "stated"


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan


def _best(told: Mapping[str, float]) -> float:
    """Return whether a state contains a fact: by its reader's word where there is one."""
    read = told.get("in_state_read", math.nan)
    return told.get("in_state", math.nan) if math.isnan(read) else read


_Place = tuple[str, str, int]


def _place(log: Log, fixture: Any, cut: Any) -> _Place:
    """Return the arm with the conversation and its cut: one arm, whoever goes on or answers."""
    described = (log.header.eval.metadata or {}).get("compressor") or {}
    cycles = (log.header.eval.task_args or {}).get("cycles") or 1
    arm = [described.get("name"), described.get("arguments"), cycles, *_made(log)]
    return digest(json.dumps(arm, sort_keys=True)), str(fixture), int(cut or 0)


def _made(log: Log) -> tuple[str, str]:
    """Return who compressed, where a model does, and when it is compressed on the way."""
    made_by = ", ".join(log.models("compressor")) if calls_model(log.compressor) else ""
    return made_by, str((log.header.eval.task_args or {}).get("in_run") or "")


def _arm_names(logs: Sequence[Log]) -> list[str]:
    """Return the arms of logs: strategies, with what else made their states where that differs."""
    names = strategy_names(logs)
    made: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for name, log in zip(names, logs, strict=True):
        made[name].add(_made(log))
    return [
        f"{name} [{' '.join(filter(None, (made_by, in_run and f'in_run={in_run}')))}]"
        if len(made[name]) > 1
        else name
        for name, (made_by, in_run) in zip(names, map(_made, logs), strict=True)
    ]


def _told(logs: Sequence[Log]) -> dict[_Place, _Told]:
    found: dict[_Place, _Told] = defaultdict(_Told)
    if not logs:
        return found
    by_path = {log.path: log for log in logs}
    names = ("fixture", "cut", "probe_id", "tokens_state", KNOWLEDGE, FACTS)
    frame = read_rows(logs, names, processes=1)
    for path, fixture, cut, probe, size, knowledge, cell in frame[["log_path", *names]].itertuples(
        index=False, name=None
    ):
        if isinstance(cell, str) and not math.isnan(size):
            place = _place(by_path[path], fixture, cut)
            found[place].add(str(probe), size, float(knowledge), json.loads(cell))
    return found


def _work(log: Log, arm: str, sample: EvalSample, score: Score, told: _Told | None) -> Work:
    value: Mapping[str, Any] = score.value if isinstance(score.value, dict) else {}
    metadata = sample.metadata or {}
    constraints = [
        # Of the state that it continued from, its own look-up counts.
        {**{k: v for k, v in known.items() if not math.isnan(v)}, **each}
        for each in (score.metadata or {}).get("constraints", [])
        for known in [told.of(str(each["probe"])) if told else {}]
    ]
    own = [_best(each) for each in constraints]
    known = {"own_facts": _mean(own), **(told.of_state() if told else {})}
    return Work(
        task=str(sample.id),
        fixture=str(metadata.get("fixture")),
        unit=f"{metadata.get('fixture')}@{metadata.get('cut')}",
        arm=arm,
        strategy=log.compressor,
        run=f"{log.header.eval.model} {log.header.eval.run_id} {sample.epoch}",
        message=str(metadata.get("message", "written")),
        solved=float(value["solved"]),
        costs={name: float(value[name]) for name in COSTS},
        constraints=constraints,
        told={name: each for name, each in known.items() if not math.isnan(each)},
    )


def _size(sample: EvalSample) -> float:
    score = (sample.scores or {}).get("compression")
    value = score.value.get("tokens_retained") if score and isinstance(score.value, dict) else None
    return float(value) if isinstance(value, int | float) else math.nan


# ----- statistics over tasks


Statistic = Callable[["Numbers"], "Numbers"]
"""Returns a value for each row of counts: how often each task is taken (draws x tasks)."""


def over_tasks(tasks: int, statistic: Statistic) -> tuple[float, tuple[float, float] | None]:
    """Return a statistic of all tasks with its 95 % limits, by drawing whole tasks.

    There are no limits with too few tasks, or where it is mostly not defined (NaN).
    """
    import numpy as np

    (value,) = statistic(np.ones((1, tasks)))
    if tasks < MIN_TASKS:
        return float(value), None
    draws = np.random.default_rng(_SEED).integers(0, tasks, (_DRAWS, tasks))
    values = statistic(np.array([np.bincount(drawn, minlength=tasks) for drawn in draws], float))
    values = values[~np.isnan(values)]
    if len(values) < _DRAWS / 2:
        return float(value), None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(value), (float(low), float(high))


def _pairs_by_task(rows: Sequence[tuple[str, float, float]]) -> "list[Numbers]":
    """Return predictor and outcome of each task, as an array of two columns."""
    import numpy as np

    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for task, predictor, outcome in rows:
        found[task].append((predictor, outcome))
    return [np.array(pairs) for pairs in found.values()]


def _ratio(above: "Numbers", below: "Numbers") -> "Numbers":
    import numpy as np

    ratio: Numbers = np.divide(above, below, out=np.full(len(above), math.nan), where=below != 0)
    return ratio


def _share_lost(tasks: "Sequence[Numbers]") -> Statistic:
    """Return how much larger the mean outcome is where the predictor is below a half."""
    import numpy as np

    lost = [pairs[:, 0] < 0.5 for pairs in tasks]
    sums, counts = (
        np.array([[f(p[at, 1]), f(p[~at, 1])] for p, at in zip(tasks, lost, strict=True)])
        for f in (np.sum, len)
    )
    return lambda taken: (
        _ratio(taken @ sums[:, 0], taken @ counts[:, 0])
        - _ratio(taken @ sums[:, 1], taken @ counts[:, 1])
    )


def _area(tasks: "Sequence[Numbers]") -> Statistic:
    """Return how often the predictor is higher where the outcome is 1; ties count a half."""
    import numpy as np

    ones = [pairs[pairs[:, 1] == 1, 0] for pairs in tasks]
    zeros = [pairs[pairs[:, 1] != 1, 0] for pairs in tasks]
    wins = np.array(
        [[(np.sign(a[:, None] - b).sum() + a.size * b.size) / 2 for b in zeros] for a in ones]
    )
    of_ones, of_zeros = (np.array(list(map(len, each)), float) for each in (ones, zeros))
    return lambda taken: _ratio(
        ((taken @ wins) * taken).sum(axis=1), (taken @ of_ones) * (taken @ of_zeros)
    )


def _centred(pairs: "Numbers") -> "Numbers":
    """Return the ranks of predictor and outcome within a task, around their mean."""
    from scipy.stats import rankdata

    ranks: Numbers = rankdata(pairs, axis=0)
    ranks -= ranks.mean(axis=0)
    return ranks


def _correlation(tasks: "Sequence[Numbers]") -> Statistic:
    """Return the rank correlation within tasks, pooled over them."""
    import numpy as np

    products = np.array([ranks.T @ ranks for ranks in map(_centred, tasks)])
    return lambda taken: _ratio(
        taken @ products[:, 0, 1],
        np.sqrt((taken @ products[:, 0, 0]) * (taken @ products[:, 1, 1])),
    )


def _by_chance(tasks: "Sequence[Numbers]") -> float:
    """Return how often outcomes that are shuffled within tasks correlate as strongly."""
    import numpy as np

    generator = np.random.default_rng(_SEED)
    found, shuffled = 0.0, np.zeros(_DRAWS)
    for x, y in (ranks.T for ranks in map(_centred, tasks)):
        found += float(x @ y)
        shuffled += generator.permuted(np.tile(y, (_DRAWS, 1)), axis=1) @ x
    return float((1 + (np.abs(shuffled) >= abs(found) - 1e-9).sum()) / (1 + _DRAWS))


# ----- the page


def sections(found: Joined) -> Iterator[Section]:
    """Yield the page: what there is, then the three questions, then the arms."""
    works = found.works
    tasks = {work.task for work in works}
    facts = [fact for work in works for fact in work.constraints]
    lines = [
        f"{len(works)} pieces of work on {len(tasks)} tasks of "
        f"{len({work.fixture for work in works})} conversations, {len(facts)} constraints in them",
        f"the probes of {found.asked} of these were asked of a state of the same arm",
    ]
    if found.other_states:
        lines.append(f"{found.other_states} continued from a state of another size than was asked")
    lines += [f"without a score: {count} ({why})" for why, count in found.unscored.items()]
    yield Section("Prediction", [lines])
    kinds = sorted({work.message for work in works})
    for kind in kinds:
        own = [work for work in works if work.message == kind]
        title = _MESSAGES.get(kind, printable(kind, MAX_CELL))
        yield Section(f"Is a fact that is lost broken? ({title})", [_lost(own)])
        yield Section(f"Does its probe tell which is kept? ({title})", [_told_apart(own)])
        yield Section(f"Does a better state do better work on a task? ({title})", [_states(own)])
        yield Section(f"Arms ({title})", [_arms(own), *_arm_pairs(own)])
    yield Section("", [_METHOD])


_MESSAGES = {"recorded": "messages as recorded", "written": "messages written for a task"}

_METHOD = (
    "broken: the check of a constraint failed; asked: it failed after the agent had asked the user "
    "for it; share broken: of kept, broken and asked",
    f"limits are of 95 %, over tasks drawn with all their work ({_DRAWS} draws, at least "
    f"{MIN_TASKS} tasks)",
    "area: how often a kept constraint has the higher value than a broken one, ties a half; 0.5 is "
    "chance",
    "correlation: of ranks within tasks, pooled; p: outcomes shuffled within tasks",
    "two arms: a paired t-test over conversations; the interval is of this pair alone, p is "
    "adjusted for all pairs by Holm's method",
)


def _shown(value: float, digits: int = 2) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def _limits(limits: tuple[float, float] | None) -> str:
    return "-" if limits is None else f"{limits[0]:.2f} to {limits[1]:.2f}"


def _facts(works: Sequence[Work], name: str) -> list[tuple[str, float, Outcome]]:
    """Return the task, a value and the outcome of each constraint for which the value is known."""
    return [
        (work.task, float(fact[name]), fact["outcome"])
        for work in works
        for fact in work.constraints
        if name in fact
    ]


def _lost(works: Sequence[Work]) -> Table:
    rows = []
    for name in ("in_state", "in_state_read"):
        if not (known := _facts(works, name)):
            continue
        for word, present in (("yes", True), ("no", False)):
            outcomes = Counter(each for _, value, each in known if (value >= 0.5) == present)
            total = outcomes.total()
            share = outcomes["broken"] / total if total else math.nan
            counts = [str(outcomes[each]) for each in ("kept", "broken", "asked")]
            rows.append([OF_FACTS[name], word, *counts, _shown(share), "", ""])
        clusters = _pairs_by_task([(task, v, float(each == "broken")) for task, v, each in known])
        difference, limits = over_tasks(len(clusters), _share_lost(clusters))
        rows[-1][-2:] = [_shown(difference), _limits(limits)]
    heads = ["fact", "is", "kept", "broken", "asked", "share broken", "no - yes", "95 %"]
    return Table(heads, rows, names=2)


def _told_apart(works: Sequence[Work]) -> Table:
    rows = []
    for name, title in OF_FACTS.items():
        if not (known := [each for each in _facts(works, name) if each[2] != "asked"]):
            continue
        clusters = _pairs_by_task([(task, v, float(each == "kept")) for task, v, each in known])
        area, limits = over_tasks(len(clusters), _area(clusters))
        outcomes = Counter(each for *_, each in known)
        counts = [str(outcomes["kept"]), str(outcomes["broken"])]
        rows.append([title, *counts, _shown(area), _limits(limits)])
    return Table(["by", "kept", "broken", "area", "95 %"], rows)


def _states(works: Sequence[Work]) -> Table:
    others = [work for work in works if work.strategy not in CONTROLS]
    compared = {"all": works, "without full and none": others}
    rows = [
        row
        for arms, own in compared.items()
        if own is works or len(own) < len(works)
        for row in _correlated(own, arms)
    ]
    heads = ["by", "outcome", "arms", "tasks", "arms in them", "correlation", "95 %", "p"]
    return Table(heads, rows, names=3)


def _correlated(works: Sequence[Work], arms: str) -> Iterator[list[str]]:
    outcomes: Mapping[str, Callable[[Work], float]] = {
        "solved": lambda work: work.solved,
        "constraints kept": lambda work: work.kept,
    }
    for name, title in OF_STATES.items():
        for outcome, value in outcomes.items():
            tried: dict[tuple[str, str], list[Work]] = defaultdict(list)
            for work in works:
                if name in work.told and not math.isnan(value(work)):
                    tried[work.task, work.arm].append(work)
            known = [  # tries with one arm are not independent of each other
                (task, _mean([each.told[name] for each in own]), _mean(list(map(value, own))))
                for (task, _), own in tried.items()
            ]
            if not (several := [task for task in _pairs_by_task(known) if len(task) > 1]):
                continue
            found, limits = over_tasks(len(several), _correlation(several))
            p_value = math.nan if math.isnan(found) else _by_chance(several)
            yield [
                *(title, outcome, arms, str(len(several)), str(sum(map(len, several)))),
                *(_shown(found), _limits(limits), shown_p(p_value)),
            ]


def _by_arm(works: Sequence[Work]) -> dict[str, list[Work]]:
    found: dict[str, list[Work]] = defaultdict(list)
    for work in works:
        found[work.arm].append(work)
    return found


def _arms(works: Sequence[Work]) -> Table:
    rows = []
    for arm, own in _by_arm(works).items():
        facts = [fact for work in own for fact in work.constraints]
        outcomes = Counter(fact["outcome"] for fact in facts)
        lost = [fact for fact in facts if _best(fact) < 0.5]
        kept = sum(fact["outcome"] == "kept" for fact in lost)
        rows.append(
            [
                *(arm, str(len(own)), _shown(_mean([work.solved for work in own]))),
                *(str(outcomes[each]) for each in ("kept", "broken", "asked")),
                f"{kept} of {len(lost)}",
                *(
                    f"{_mean([work.costs[name] for work in own]):,.{int(name == 'questions')}f}"
                    for name in COSTS
                ),
            ]
        )
    heads = ["arm", "works", "solved", "kept", "broken", "asked", "lost but kept", *COSTS.values()]
    return Table(heads, rows)


def _arm_pairs(works: Sequence[Work]) -> Iterator[Table]:
    values = {
        arm: ArmValues.of(
            Observation(work.fixture, work.unit, work.task, work.run, work.solved) for work in own
        )
        for arm, own in _by_arm(works).items()
    }
    pairs = {
        (first, second): difference
        for first, second in combinations(values, 2)
        if (difference := paired_difference(values[first], values[second]))
    }
    known = {pair: each for pair, each in pairs.items() if each.elsewhere}
    p_values = holm(
        {
            pair: each.elsewhere.p_value(each.estimate)
            for pair, each in known.items()
            if each.elsewhere
        }
    )
    rows = [
        [
            *(second, first, str(each.probes), _shown(each.estimate)),
            _limits(each.elsewhere.interval(each.estimate) if each.elsewhere else None),
            shown_p(p_values[first, second]),
        ]
        for (first, second), each in known.items()
    ]
    if rows:
        heads = ["solved by", "against", "tasks", "difference", "95 %", "p adjusted"]
        yield Table(heads, rows, names=2)
