"""Read what was named, one conversation at a time, and say what became of everything."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compression_eval.conversations.building import Built, Images, build
from compression_eval.conversations.drafts import Conversation
from compression_eval.conversations.formats import format_of
from compression_eval.conversations.inputs import Input, readable
from compression_eval.conversations.rows import are_rows, read_rows
from compression_eval.conversations.sources import source_file
from compression_eval.fixtures.errors import DataError


@dataclass(frozen=True)
class Recognised:
    """A file whose format is known."""

    input: Input
    format: str
    """The format's name; ``rows`` for those of a dataset, each of which has a format of its own."""
    seen: str
    """What marks it, in a few words."""


@dataclass(frozen=True)
class Read:
    """A conversation of a file."""

    input: Input
    format: str
    built: Built


@dataclass(frozen=True)
class Refused:
    """A file, or one conversation of it, that no fixture can be made of."""

    input: Input
    reason: str
    recognised: bool = False
    """Whether the file's format is known."""


Outcome = Recognised | Read | Refused


@dataclass(frozen=True)
class ReadOptions:
    """How files are read."""

    format: str = "auto"
    """Name of a format, or ``auto``."""
    images: Images = "describe"
    columns: Mapping[str, str] = field(default_factory=dict)
    """For rows: the column that holds a part, by the part's name."""


def read_input(item: Input, options: ReadOptions) -> Iterator[Outcome]:
    """Yield what is in a file or at an address: its format, then its conversations.

    Nothing is raised for what is wrong with one: a corpus is not given up for one file.

    Args:
        item: What to read.
        options: How.
    """
    recognised = False
    try:
        for outcome in _outcomes(item, options):
            recognised = True
            yield outcome
    except DataError as error:
        yield Refused(item, _without_place(str(error), item), recognised)
    except (OSError, MemoryError, RecursionError) as error:
        yield Refused(item, f"cannot be read: {type(error).__name__}", recognised)
    except Exception as error:  # a reader's defect must not end the import of a whole corpus
        where = _where(error)
        reason = f"the reader failed (please report this): {type(error).__name__} in {where}"
        yield Refused(item, reason, recognised)


def _outcomes(item: Input, options: ReadOptions) -> Iterator[Outcome]:
    kind, conversations = _opened(item, options)
    yield kind
    for conversation in conversations:
        part = f" (part {conversation.part})" if conversation.part else ""
        try:
            built = build(conversation, images=options.images)
        except DataError as error:
            yield Refused(item, f"{error}{part}", recognised=True)
        else:
            yield Read(item, conversation.format, built)


def _opened(item: Input, options: ReadOptions) -> tuple[Recognised, Iterator[Conversation]]:
    if not item.is_address and (reason := readable(item.path)):
        raise DataError(reason)
    if item.is_address or are_rows(item.place, options.columns):
        if options.format != "auto":
            raise DataError("rows of a dataset are told apart by themselves; leave out --format")
        seen, conversations = read_rows(item.place, options.columns)
        return Recognised(item, "rows", seen), conversations
    source = source_file(item.path)
    found, seen = format_of(source, options.format)
    return Recognised(item, found.name, seen), found.read(source)


def _without_place(text: str, item: Input) -> str:
    """Return an error without the file's name at its start, which is shown anyway."""
    if not item.named:
        text = text.partition(" (formats: ")[0]  # of many files in a folder most are none of these
    return "; ".join(line.removeprefix(f"{item.place}: ") for line in text.splitlines())


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return "an unknown place"
    code = trace.tb_frame.f_code
    return f"{code.co_name}, line {trace.tb_lineno}"
