"""An import over the machines of a cluster: what `Import` does, a shard at a time.

Where one file decides about others there are stages: names to replace and copies of a session are
learnt from all shards before any is read for good, and fixtures are named in the order of the
files when all are read. So what comes out does not depend on who worked on which shard, or when.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from compression_eval.conversations.drafts import Account
from compression_eval.conversations.duplicates import Copy
from compression_eval.conversations.pipeline import (
    Defect,
    Import,
    ImportOptions,
    ImportWorker,
    Key,
    LeftOut,
    Outcome,
    ReadConversation,
    Unread,
    left_out,
)
from compression_eval.conversations.scrubbing import Vocabulary
from compression_eval.conversations.shards import (
    Corpus,
    Shard,
    Sharding,
    staged,
    take_over,
)
from compression_eval.conversations.sources import Input
from compression_eval.conversations.stores import Shared
from compression_eval.errors import DataError
from compression_eval.fixtures.models import Fixture
from compression_eval.fixtures.writing import fixture_text

_Found = list[Copy | tuple[Key, Defect]]

_Learnt = tuple[Vocabulary, LeftOut]
"""What all conversations taught, and which to leave out."""


def import_shards(
    inputs: Sequence[Input],
    out: str,
    options: ImportOptions,
    sharding: Sharding,
    say: Callable[[str], None],
    explain: Callable[[str], None] | None = None,
    *,
    as_json: bool = False,
    force: bool = False,
) -> Import | None:
    """Import into a folder of Parquet files with a manifest; goes on where it was stopped.

    Args:
        inputs: What was named.
        out: The folder, or its address.
        options: As for `Import`.
        sharding: Who works, and on how much at a time.
        say: As for `Import`.
        explain: As for `Import`.
        as_json: As for `Import`.
        force: Whether to begin anew, whatever is there.

    Returns:
        What was done, for its overview; None if all had been done before.

    Raises:
        DataError: Something else is in the folder, the engine cannot be used, or workers died
            again and again.
    """
    made_by = _described(options, explain is not None)
    corpus = Corpus(out, made_by, inputs, sharding, force=force)
    if corpus.complete:
        return None
    names: list[str | None] = []

    def name(fixture: Fixture) -> None:
        names[-1] = fixture.name

    job = Import(options, name, say, explain, as_json=as_json)
    with sharding.engine.connected():
        without: LeftOut = {}
        taught: Shared | None = None
        if options.reads_twice:
            corpus.stage("learn", partial(_learn, options))
            taught = corpus.shared("taught", partial(_together, corpus.shards))
            _, without = taught.get()
        corpus.stage("read", partial(_read, options, taught, explain is not None))
        named: dict[int, list[str | None]] = {}
        for shard in corpus.shards:
            names.clear()
            for item, outcomes in zip(shard.items, shard.result("read"), strict=True):
                job.take(item, _counted(outcomes, names), without)
            if any(names):
                named[shard.number] = list(names)
        job.end(without)
        corpus.stage("finish", partial(take_over, stage="read"), named)
    failed = f"{job.overview.failed} could not be imported"
    if not job.overview.failed:
        failed = "" if job.imported else "nothing was imported"
    corpus.finish([corpus.shards[number].result("finish") for number in named], failed)
    return job


def _described(options: ImportOptions, explained: bool) -> dict[str, Any]:
    described: dict[str, Any] = {"command": "import", "explained": explained}
    described |= {"format": options.format, "images": options.images, "cuts": repr(options.cuts)}
    described |= {"columns": sorted(options.columns.items()), "duplicates": options.duplicates}
    described |= {"allow_missing": options.allow_missing}
    if options.scrubbing:
        settings, pseudonyms = options.scrubbing
        described["scrub"] = settings.described(pseudonyms)
    return described


def _learn(options: ImportOptions, shard: Shard) -> tuple[Vocabulary, _Found, dict[Key, str]]:
    worker = ImportWorker(options)
    found = [each for item in shard.items for each in worker.read_ahead(item)]
    for each in found:
        if not isinstance(each, Copy):
            (place, _), why = each
            _raise_unread(place, why)
    return worker.taught(), found, worker.learnt


def _together(shards: Sequence[Shard]) -> _Learnt:
    taught, read = Vocabulary(), _Found()
    for shard in shards:
        vocabulary, found, _ = shard.result("learn")
        taught = Vocabulary.of((taught, vocabulary))
        read += found
    return taught, left_out(read)


def _read(
    options: ImportOptions, taught: Shared | None, explained: bool, shard: Shard
) -> list[list[Outcome]]:
    """Leave the fixtures of a shard in a file; returns all else about them, file by file."""
    worker = ImportWorker(options)
    if taught:
        vocabulary, without = taught.get()
        worker.prepare([vocabulary], without, shard.result("learn")[2])
    with staged(shard, "read") as writer:

        def noted(outcome: Outcome, place: str) -> Outcome:
            _raise_unread(place, outcome)
            if not isinstance(outcome, ReadConversation):
                return outcome
            fixture = outcome.fixture
            try:
                writer.add(fixture, fixture_text(fixture))
            except OSError:
                raise
            except Exception as error:
                return Defect.of(error, "the import")
            left = fixture.model_copy(update={"messages": []})
            account = outcome.account if explained else Account((), ())
            return replace(outcome, fixture=left, account=account)

        return [[noted(each, item.place) for each in worker.read(item)] for item in shard.items]


def _raise_unread(place: str, outcome: Outcome) -> None:
    """Have a shard done again, of which a file could not be read this time."""
    if isinstance(outcome, Unread):
        raise DataError(f"{place}: {outcome.reason}")


def _counted(outcomes: Sequence[Outcome], names: list[str | None]) -> Iterator[Outcome]:
    """Yield outcomes; every fixture gets a place for its name, which stays None if it gets none."""
    for outcome in outcomes:
        if isinstance(outcome, ReadConversation):
            names.append(None)
        yield outcome
