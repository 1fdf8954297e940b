"""A conversation up to a cut, as those who write probes need it, and the probes on their way.

A `History` has three parts: a head and a tail that every strategy keeps, and the middle. Probes are
`Candidate` until `generate` chooses some of them; what is not fit is `Dropped`, with its reasons.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Literal, get_args

from compression_eval.compressors.budget import split
from compression_eval.compressors.tokens import token_counter
from compression_eval.file_ops.calls import Call, calls_of_fixture
from compression_eval.file_ops.ledger import Inventory, Reading, inventory_of
from compression_eval.file_ops.naming import history_files
from compression_eval.file_ops.tools import command_of, deed_of, read_calls
from compression_eval.fixtures.banks import AnswerKey, ExpectedFact, Probe, ProbeType
from compression_eval.fixtures.conversation import conversation
from compression_eval.fixtures.cuts import TAIL_TOKENS
from compression_eval.fixtures.models import Fixture, Language, Message
from compression_eval.text.lookup import Text

Third = Literal["early", "middle", "late"]
THIRDS: tuple[Third, ...] = ("early", "middle", "late")

TYPES: tuple[ProbeType, ...] = get_args(ProbeType)

IN_WORKSPACE = (
    "one look at the workspace would tell, as it does for a quarter of the probes already"
)
"""Why a probe is one too many."""

DRAFT = "draft"
"""The id of a probe before it has its place in a bank."""

_MAX_COMMAND = 20_000
"""Characters of a command line that are read."""
_MIN_REQUEST_WORDS = 4


@dataclass(frozen=True, eq=False)
class History:
    """What lies before a cut, in three parts: a head and a tail that are kept, and the middle."""

    fixture: Fixture
    cut: int
    """Number of messages before the cut."""
    tail_start: int
    """Index of the first message of the kept tail."""
    sizes: Sequence[int]
    """Tokens of each message before the cut."""
    texts: Sequence[Text]
    """Every message before the cut, prepared for look-ups."""

    @property
    def language(self) -> Language:
        """The language to ask in."""
        return self.fixture.language

    @cached_property
    def messages(self) -> list[Message]:
        """The messages before the cut."""
        return self.fixture.messages[: self.cut]

    @cached_property
    def start(self) -> int:
        """Index of the first message that is not kept as part of the system prompt."""
        return next((i for i, m in enumerate(self.messages) if m.role != "system"), self.cut)

    @property
    def compressed(self) -> range:
        """Indices of the messages that do not stay as they are."""
        return range(self.start, self.tail_start)

    @cached_property
    def calls(self) -> list[Call]:
        """The tool calls before the cut, with their results."""
        return calls_of_fixture(self.messages)

    @cached_property
    def reading(self) -> Reading:
        """What these calls did to files."""
        return read_calls(self.calls)

    @cached_property
    def inventory(self) -> Inventory:
        """What became of each file."""
        return inventory_of(self.reading.events)

    @cached_property
    def files(self) -> list[str]:
        """Every file that the history names."""
        return list(history_files(self.messages, self.reading))

    @cached_property
    def requests(self) -> list[int]:
        """Where a person typed what may ask for something; "yes" and "go on" do not."""
        typed = ((index, message.typed) for index, message in enumerate(self.messages))
        return [
            index
            for index, text in typed
            if text.strip() and (not text.isascii() or len(text.split()) >= _MIN_REQUEST_WORDS)
        ]

    def project_path(self, path: str) -> str:
        """Return a path as it is written in probes: without the folder of the project."""
        root = self.reading.root
        return path.removeprefix(f"{root}/") if root else path

    def still_there(self, path: str) -> bool:
        """Return whether the agent wrote a file, and it is neither gone nor moved."""
        state = self.inventory.states.get(path)
        return state is not None and state.status in ("created", "modified")

    def with_results(self, *messages: int) -> list[int]:
        """Return indices of messages with those of the results of their calls, rising."""
        found: list[int] = []
        for message in sorted(messages):
            end = message + 1
            while end < self.cut and self.messages[end].role == "tool":
                end += 1
            found.extend(range(message, end))
        return found

    def stating(self, forms: Iterable[str], among: Iterable[int] | None = None) -> Iterator[int]:
        """Yield the indices of the messages that state one of ``forms``, rising."""
        wanted = list(forms)
        for index in range(self.cut) if among is None else sorted(set(among)):
            if 0 <= index < self.cut and self.texts[index].has_any(wanted):
                yield index

    @property
    def verbatim(self) -> tuple[int, ...]:
        """Indices of the messages that stay as they are."""
        return (*range(self.start), *range(self.tail_start, self.cut))

    def kept(self, forms: Iterable[str]) -> bool:
        """Return whether a message that stays verbatim states one of ``forms``."""
        return any(True for _ in self.stating(forms, self.verbatim))

    def third(self, index: int) -> Third:
        """Return in which third of the compressed part, by tokens, a message begins."""
        ends = self._ends
        place = min(max(index - self.start, 0), len(ends) - 1)
        before = ends[place] - self.sizes[self.start + place]
        return THIRDS[min(2, 3 * before // max(ends[-1], 1))]

    @cached_property
    def _ends(self) -> list[int]:
        return list(accumulate(self.sizes[i] for i in self.compressed))

    def chunks(self, budget: int) -> list[range]:
        """Divide the compressed part into runs of messages of about equal size.

        Args:
            budget: Tokens that a run may have; a single message may be larger.
        """
        total = self._ends[-1] if self._ends else 0
        number = max(1, -(-total // budget))
        limits = [total * part / number for part in range(1, number)]
        edges = [self.start + bisect_right(self._ends, limit) for limit in limits]
        points = sorted({self.start, *edges, self.tail_start})
        return [range(a, b) for a, b in pairwise(points)]


def command_line(call: Call) -> str:
    """Return the command line of a shell call, bounded; empty for any other call."""
    if deed_of(call.name) != "shell":
        return ""
    command = command_of(call.arguments)
    if isinstance(command, list):
        wrapped = len(command) == 3 and command[1] in ("-c", "-lc")
        command = command[2] if wrapped else " ".join(command)
    return (command or "")[:_MAX_COMMAND]


async def histories(
    fixture: Fixture, cuts: Sequence[int], tail_tokens: int = TAIL_TOKENS
) -> list[History]:
    """Return the history before each of some cuts.

    Args:
        fixture: The conversation.
        cuts: Numbers of messages, rising.
        tail_tokens: Budget of the kept tail.
    """
    messages = await conversation(fixture)
    counter = token_counter()
    last = max(cuts)
    sizes = [counter.message(message) for message in messages[:last]]
    texts = [Text(message.searchable()) for message in fixture.messages[:last]]
    found: list[History] = []
    for cut in cuts:
        tail = cut - len(split(messages[:cut], 0, tail_tokens).tail)
        found.append(History(fixture, cut, tail, sizes[:cut], texts[:cut]))
    return found


def fact(
    text: str, evidence: Iterable[int], any_of: Iterable[str] = (), superseded: Iterable[str] = ()
) -> ExpectedFact:
    """Return an expected fact; only fields with a value are set, so only they are written."""
    fields: dict[str, object] = {"fact": text, "evidence": sorted(set(evidence))}
    if forms := list(dict.fromkeys(form for form in any_of if form != text)):
        fields["any_of"] = forms
    if earlier := list(dict.fromkeys(superseded)):
        fields["superseded"] = earlier
    return ExpectedFact.model_validate(fields)


def draft(
    history: History,
    kind: ProbeType,
    question: str,
    facts: Sequence[ExpectedFact],
    answer: str,
    origin: str,
    key: AnswerKey | None = None,
) -> Probe:
    """Return a probe without an id; only fields with a value are set, so only they are written."""
    more = {"answer_key": key} if key is not None else {}
    return Probe(
        id=DRAFT,
        type=kind,
        question=question,
        expected_facts=list(facts),
        reference_answer=answer,
        cut=history.cut,
        origin=origin,
        **more,
    )


@dataclass(frozen=True)
class Candidate:
    """A probe that may be taken, and what decides which are."""

    probe: Probe
    template: str
    """What it is made after; few of one kind are taken."""
    third: Third
    """The third of the compressed part that it is about."""
    need: str = ""
    """Why whoever goes on needs the answer, as the model that wrote it has it."""
    workspace: bool = False
    """Whether one look at files or git would tell, by the word of a reader."""

    @classmethod
    def of(cls, probe: Probe, history: History, template: str) -> "Candidate":
        """Return a probe as a candidate.

        It is about where those facts first stand that the kept parts do not give; the middle one
        of several.
        """
        facts = probe.expected_facts
        needed = [item for item in facts if not history.kept(item.forms)] or facts
        places = sorted(min(item.evidence) for item in needed if item.evidence)
        third = history.third(places[len(places) // 2] if places else history.start)
        return cls(probe, template, third)


@dataclass(frozen=True)
class Dropped:
    """A candidate that was not fit, and why."""

    type: ProbeType | Literal[""]
    """Empty where it cannot be read."""
    origin: str
    question: str
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, probe: Probe, reasons: Sequence[str]) -> "Dropped":
        """Return a probe as one that was dropped."""
        return cls(probe.type, probe.origin, probe.question, tuple(reasons))


@dataclass
class Harvest:
    """Candidates and what was dropped on the way to them."""

    candidates: list[Candidate] = field(default_factory=list)
    dropped: list[Dropped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What else there is to say."""

    def add(self, other: "Harvest") -> None:
        """Take over what another has."""
        self.notes.extend(other.notes)
        self.candidates.extend(other.candidates)
        self.dropped.extend(other.dropped)
