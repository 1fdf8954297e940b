"""What a strategy is: a class whose fields are its arguments, and its place in runs.

1. `Strategy` is the base. `@strategy` makes the fields of a subclass its keyword arguments, checked
   by pydantic, and its class variables tell what runs and lists have to know.
2. `compressor` gives such a class a name: a `Compressor`, with a model of the arguments that checks
   them in command lines, YAML files and logs. A user's code and a wrapped strategy make a
   `Compressor` of their own.
3. A `CompressorSpec` is a `Compressor` with checked arguments. It builds the strategy of a run.
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal, TypeVar, dataclass_transform

from inspect_ai.model import ChatMessage, ChatMessageUser, CompactionStrategy
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, create_model
from pydantic.dataclasses import dataclass as checked_dataclass
from pydantic.fields import FieldInfo

from compression_eval.compressors.prompts import prompt, prompts_digest
from compression_eval.fixtures.cuts import TAIL_TOKENS
from compression_eval.fixtures.digests import digest
from compression_eval.fixtures.models import Fixture

Text = Annotated[str, Field(min_length=1)]
"""A text that must not be empty."""

_Kind = TypeVar("_Kind")


@dataclass_transform(kw_only_default=True, field_specifiers=(Field,))
def strategy(kind: type[_Kind]) -> type[_Kind]:
    """Make the fields of a class its keyword arguments, checked on construction.

    ``compression-eval compressors list`` shows the text below a field.
    """
    config = ConfigDict(extra="forbid", use_attribute_docstrings=True)
    decorated: Any = checked_dataclass(kind, kw_only=True, eq=False, config=config)
    return decorated  # type: ignore[no-any-return]


@strategy
class Strategy(CompactionStrategy):
    """Base of our strategies; Inspect's agents accept them like Inspect's own.

    They never warn the model of a compression (``memory``): agents have different tools, so results
    are only comparable without a warning. Their ``compact`` returns the new messages, and the one
    that an agent adds to its history, if there is one; it raises `CompressionError` where there is
    nothing to compress and where a model's reply cannot be used.
    """

    kind: ClassVar[Literal["summary", "edit", "trim"]] = "summary"
    summary: ClassVar[str]
    """What it does, in one line."""
    exempt: ClassVar[bool] = False
    """Whether it is a control that may shrink nothing or leave nothing."""
    readable: ClassVar[bool] = True
    """Whether its state can be read; false for an encrypted one."""
    check_model: ClassVar[Any] = None
    """A function of a model; raises `CompressionError` for one that this strategy cannot use."""
    unsupported: ClassVar[Any] = None
    """Set if it needs more of a fixture than its messages; see `CompressorSpec.unsupported`."""
    borrowed: ClassVar[Any] = None
    """A function of checked arguments that returns the text taken from another package: the prompt
    of the version that is installed."""

    threshold: int | float = 0.9
    """When an agent that uses this strategy compresses; see Inspect."""

    def __post_init__(self) -> None:
        super().__init__(type=self.kind, threshold=self.threshold, memory=False)

    def _repr_params_(self) -> dict[str, Any]:
        kept = {field.name: getattr(self, field.name) for field in fields(self)}
        return super()._repr_params_() | kept

    @classmethod
    def made(cls, arguments: dict[str, Any]) -> CompactionStrategy:
        """Return the strategy of a run; overridden where that is an object of Inspect's."""
        return cls(**arguments)


@strategy
class WindowStrategy(Strategy):
    """A strategy that keeps the start and the end of a conversation verbatim."""

    head_tokens: NonNegativeInt = 0
    """Tokens kept at the start, beyond the system prompt."""
    tail_tokens: NonNegativeInt = TAIL_TOKENS
    """Tokens kept at the end; with a budget above 0 at least the last turn is kept."""
    target_tokens: PositiveInt | None = None
    """Wanted tokens of the whole state, system prompt included; it is filled as far as it goes.
    With it, ``tail_tokens`` (and ``summary_tokens``, where there is a summary) are no longer
    budgets: only their proportion counts, by which the target is divided. ``tail`` gives all of it
    to the tail."""


def carrier(text: str, metadata: dict[str, Any]) -> ChatMessageUser:
    """Return the message that replaces the removed messages in a state."""
    return ChatMessageUser(content=f"{prompt('carrier')}\n\n{text}", metadata=metadata)


def carried(messages: Sequence[ChatMessage], key: str) -> tuple[Any, list[ChatMessage]]:
    """Return what an earlier compression left for the next one, and the messages without that.

    That is the newest value of a metadata key, or None, and the messages that do not have the key.
    """
    values = [(message.metadata or {}).get(key) for message in messages]
    newest = next((value for value in reversed(values) if value is not None), None)
    return newest, [m for m in messages if key not in (m.metadata or {})]


class Arguments(BaseModel):
    """No arguments; the base of all."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class Compressor:
    """A strategy with a name."""

    name: str
    summary: str
    """What it does, in one line."""
    arguments: type[Arguments]
    build: Callable[[Any, Fixture | None], CompactionStrategy]
    """Makes a strategy from checked arguments, and the fixture to compress if it is known."""
    kind: type[Strategy] = Strategy  # type: ignore[type-abstract]
    """Its class variables say what runs have to know; of a user's code that is the base itself."""
    source_digest: str = ""
    """For a user's code: digest of the files that define it, when they were imported."""


def compressor(name: str, kind: type[Strategy]) -> Compressor:
    """Return a strategy under a name; the fields of its class are the arguments.

    The field ``fixture`` receives the fixture to compress, and ``threshold`` is left to agents.
    """
    declared: dict[str, FieldInfo] = {}
    for base in reversed(kind.__mro__):
        for argument, field in vars(base).get("__pydantic_fields__", {}).items():
            # Only the class that declares a field has its description.
            described = field if field.description else declared.get(argument, field)
            declared[argument] = copy(field)
            declared[argument].description = " ".join((described.description or "").split())
    del declared["threshold"]
    takes_fixture = declared.pop("fixture", None) is not None
    models: dict[str, Any] = {name: (field.annotation, field) for name, field in declared.items()}

    def build(given: Arguments, fixture: Fixture | None = None) -> CompactionStrategy:
        values = {name: getattr(given, name) for name in models}
        return kind.made(values | {"fixture": fixture} if takes_fixture else values)

    arguments = create_model(f"{kind.__name__}Arguments", __base__=Arguments, **models)
    return Compressor(name, kind.summary, arguments, build, kind)


@dataclass(frozen=True)
class CompressorSpec:
    """A named strategy with its checked arguments, as logs and YAML files contain it."""

    compressor: Compressor
    arguments: Arguments

    @property
    def name(self) -> str:
        """The strategy's registered name."""
        return self.compressor.name

    def build(self, fixture: Fixture | None = None) -> CompactionStrategy:
        """Return a new strategy object.

        Args:
            fixture: The fixture to compress; without it, a strategy that needs one can be built but
                not used.
        """
        return self.compressor.build(self.arguments, fixture)

    def texts_digest(self) -> str:
        """Return a digest of the texts that the strategy may use next to its arguments.

        These are the prompts of this package, and what it takes from another one.
        """
        borrowed = self.compressor.kind.borrowed
        own = prompts_digest()
        return digest(f"{own} {borrowed(self.arguments)}") if borrowed else own

    def unsupported(self, fixture: Fixture, cuts: Sequence[int]) -> str | None:
        """Return why compressing a fixture at the cuts must fail; None if it need not.

        Raises:
            DataError: The strategy has nothing for one of the cuts.
        """
        check = self.compressor.kind.unsupported
        reason: str | None = check(fixture, cuts) if check else None
        return reason

    def described(self) -> dict[str, Any]:
        """Return name and effective arguments as plain data."""
        return {"name": self.name, "arguments": self.arguments.model_dump(mode="json")}
