"""The version of a task: a digest of what decides its results and is not an argument.

Inspect takes a log with the same arguments for work already done. An edited prompt, fixture or
rubric must therefore change the version.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version as version_of
from typing import Any

from compression_eval._version import __version__
from compression_eval.compressors.prompts import prompts_digest
from compression_eval.fixtures.digests import digest

COMPARABLE = 4
"""Raised when scores stop being comparable with those of earlier releases."""

MADE_FROM = "made_from_"
"""Prefix of the metadata key for what a version was made from; the version is the suffix.

A retry adds its own behind those of the log that it continues with, so that it can be told from a
new run. Only those of the first made samples.
"""

MAX_LISTED = 400
"""Files and settings that are in a log's metadata; of more, the files are there as one."""

TOOLS = {"inspect_ai": version_of("inspect_ai"), "compression_eval": __version__}
"""Versions of the packages that make a log. Samples of two of them are not mixed in one log, but
logs are of one arm all the same."""

SOURCE, TEXTS = "compressor's source", "compressors' prompts"
"""Names of the digests of a strategy's code, if it is the user's, and of the texts that it uses."""

_FILES = ("fixture ", "bank of ", "continuations of ", "code base of ")
"""Beginnings of the names of files."""


def result_version(parts: Iterable[str]) -> str:
    """Return a version such as ``2-3f2a9c0d11e4``.

    Args:
        parts: Digests of everything that decides the results of one task.
    """
    whole = hashlib.sha256()
    for part in (*TOOLS.values(), prompts_digest(), *parts):
        whole.update(part.encode() + b"\0")
    return f"{COMPARABLE}-{whole.hexdigest()[:12]}"


def made_from(version: str, parts: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the metadata that records what a version was made from.

    Args:
        version: As of `result_version`.
        parts: Digest or name by what it is.
    """
    listed = dict(parts)
    if len(parts) > MAX_LISTED:
        files = {name: listed.pop(name) for name in parts if name.startswith(_FILES)}
        listed[f"{len(files)} files {digest(str(list(files)))[:12]}"] = digest(str(files))
    shown = {name: value[:12] for name, value in listed.items()}
    return {f"{MADE_FROM}{version}": shown | TOOLS}


def parts_of(version: str, metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return what a log's samples were made from, but for `TOOLS`; empty if it does not say.

    Args:
        version: Of its task.
        metadata: Of its log.
    """
    parts = metadata.get(_first(metadata) or f"{MADE_FROM}{version}")
    known = parts if isinstance(parts, dict) else {}
    return {name: value for name, value in known.items() if name not in TOOLS}


def changed_since(version: str, metadata: Mapping[str, Any]) -> list[str] | None:
    """Return what differs between a version and the one that a retried log was made from.

    Args:
        version: What the task is made from now.
        metadata: Of its log.

    Returns:
        A line for each file or setting, as far as they are known; None if nothing changed.
    """
    now, first = metadata.get(f"{MADE_FROM}{version}"), _first(metadata)
    if now is None or first is None or first == f"{MADE_FROM}{version}":
        return None
    return list(_differences(metadata[first], now))


def _first(metadata: Mapping[str, Any]) -> str | None:
    return next((name for name in metadata if name.startswith(MADE_FROM)), None)


def _differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    for name, value in before.items():
        if name not in now:
            yield f"{name}: gone"
        elif now[name] != value:
            yield f"{name}: {value}, now {now[name]}"
    yield from (f"{name}: new" for name in now if name not in before)
