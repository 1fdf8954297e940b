"""The version of a task: a digest of what decides its results and is not an argument.

Inspect takes a log with the same arguments for work already done. An edited prompt, fixture or
rubric must therefore change the version.
"""

import hashlib
from collections.abc import Iterable

from compression_eval._version import __version__
from compression_eval.compressors.prompts import prompts_digest

COMPARABLE = 1
"""Rises when scores stop being comparable with those of earlier releases."""


def result_version(parts: Iterable[str]) -> str:
    """Return a version such as ``1-3f2a9c0d11e4``.

    Args:
        parts: Digests of everything that decides the results of one task.
    """
    whole = hashlib.sha256()
    for part in (__version__, prompts_digest(), *parts):
        whole.update(part.encode() + b"\0")
    return f"{COMPARABLE}-{whole.hexdigest()[:12]}"
