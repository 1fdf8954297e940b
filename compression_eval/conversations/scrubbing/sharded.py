"""A corpus scrubbed and audited over the machines of a cluster, a shard at a time."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import click

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.settings import ScrubSettings
from compression_eval.conversations.scrubbing.texts import Report
from compression_eval.conversations.scrubbing.vocabulary import Vocabulary
from compression_eval.conversations.scrubbing.working import Done, ScrubWorker
from compression_eval.conversations.shards import (
    Corpus,
    Shard,
    Sharding,
    bank_of,
    fixture_files,
    fixtures_in,
    parts,
    span,
    staged,
    take_over,
)
from compression_eval.conversations.sources import Input
from compression_eval.conversations.stores import Shared
from compression_eval.errors import DataError
from compression_eval.fixtures.banks import ProbeBank
from compression_eval.fixtures.models import Fixture


@dataclass(frozen=True)
class AllScrubbed:
    """What became of the fixtures that were scrubbed."""

    reports: Sequence[tuple[str, Report]]
    """What was replaced in each, by where it is."""
    refused: Sequence[str]
    """Where those are that were not written, since something is still found there."""

    @property
    def failed(self) -> str:
        """What is said if some were not written."""
        if not self.refused:
            return ""
        told = f"{len(self.refused)} of {len(self.reports)} not written"
        return f"{told}: something is still found there: {', '.join(self.refused)}"


def scrub_shards(
    named: Sequence[str],
    out: str,
    settings: ScrubSettings,
    pseudonyms: Pseudonyms,
    sharding: Sharding,
    *,
    force: bool,
) -> AllScrubbed | None:
    """Scrub fixtures into a folder of Parquet files with a manifest.

    Args:
        named: The fixtures, as `find_sources` takes them.
        out: The folder, or its address.
        settings: What is scrubbed.
        pseudonyms: Where the stand-ins come from.
        sharding: Who works, and on how much at a time.
        force: Whether to begin anew, whatever is there.

    Returns:
        What was replaced; None if all had been done before.

    Raises:
        DataError: As `Corpus`; or two fixtures have one name when they are scrubbed.
    """
    made_by = {"command": "scrub", **settings.described(pseudonyms)}
    corpus = Corpus(out, made_by, fixture_files(named), sharding, force=force)
    if corpus.complete:
        return None
    reports: list[tuple[str, Report]] = []
    refused: list[str] = []
    written: dict[str, str] = {}
    names: dict[int, list[str]] = {}
    with sharding.engine.connected():
        corpus.stage("learn", partial(_learn, settings, pseudonyms))
        learnt = (shard.result("learn") for shard in corpus.shards)
        taught = corpus.shared("taught", lambda: Vocabulary.of(learnt))
        corpus.stage("scrub", partial(_scrub, settings, pseudonyms, taught))
        for shard in corpus.shards:
            for origin, name, done in shard.result("scrub"):
                reports.append((origin, done.report))
                for line in done.notes:
                    click.echo(line, err=True)
                if name is None:
                    refused.append(origin)
                    continue
                if name in written:
                    raise DataError(
                        f"{origin}: its scrubbed name is that of {written[name]}; rename one"
                    )
                written[name] = origin
                names.setdefault(shard.number, []).append(name)
        corpus.stage("finish", partial(take_over, stage="scrub"), names)
    scrubbed = AllScrubbed(reports, refused)
    corpus.finish([corpus.shards[number].result("finish") for number in names], scrubbed.failed)
    return scrubbed


def audit_shards(
    named: Sequence[str], settings: ScrubSettings, sharding: Sharding
) -> tuple[int, list[str]]:
    """Return how many fixtures and banks were audited, and what was found."""
    files = list(parts(fixture_files(named), sharding.shard_bytes))
    learnt = sharding.engine.run("learn", partial(_taught, settings), files, span)
    taught = Vocabulary.of(dict(sorted(dict(learnt).items())).values())
    done = dict(sharding.engine.run("audit", partial(_audit, settings, taught), files, span))
    findings = [line for number in sorted(done) for line in done[number][1]]
    return sum(count for count, _ in done.values()), findings


def _learn(settings: ScrubSettings, pseudonyms: Pseudonyms, shard: Shard) -> Vocabulary:
    return _taught(settings, shard.items, pseudonyms)


def _taught(
    settings: ScrubSettings, files: Sequence[Input], pseudonyms: Pseudonyms | None = None
) -> Vocabulary:
    worker = ScrubWorker(settings, pseudonyms or Pseudonyms())
    for item in files:
        list(worker.learn(item))
    return worker.taught()


def _scrub(
    settings: ScrubSettings, pseudonyms: Pseudonyms, taught: Shared, shard: Shard
) -> list[tuple[str, str | None, Done]]:
    """Leave a shard's fixtures in a file; returns where each was, its name, and all else."""
    worker = ScrubWorker(settings, pseudonyms)
    worker.teach([taught.get()])
    results: list[tuple[str, str | None, Done]] = []
    with staged(shard, "scrub") as writer:
        for source in fixtures_in(shard.items):
            done, fixture, bank = worker.scrubbed(source)
            if done.fixture is not None and fixture is not None:
                writer.add(fixture, done.fixture, bank, done.bank, file=done.stem or "fixture")
            name = None if done.fixture is None or fixture is None else fixture.name
            results.append((source.origin, name, replace(done, fixture=None, bank=None)))
    return results


def _audit(
    settings: ScrubSettings, taught: Vocabulary, files: Sequence[Input]
) -> tuple[int, list[str]]:
    worker = ScrubWorker(settings, Pseudonyms())
    worker.teach([taught])
    count, lines = 0, list[str]()
    for source in fixtures_in(files):
        held: list[tuple[str, Fixture | ProbeBank]] = [(source.origin, source.read_fixture())]
        if found := bank_of(source):
            held.append((found.origin, found.bank))
        count += len(held)
        lines += (f"{place}: {each}" for place, one in held for each in worker.audited(one))
    return count, lines
