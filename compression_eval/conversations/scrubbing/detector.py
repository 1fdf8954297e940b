"""The secret rules of a maintained scanner, behind one function.

They come with ``kingfisher-secret-scanner`` (Apache-2.0, by MongoDB): several hundred rules of
vendors, run in this process, without network. The package is an extra, because only the scrubber
needs it; where it is missing nothing is scrubbed, since a weaker scrub would not be seen.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import TYPE_CHECKING

from compression_eval.conversations.scrubbing.hits import Hit
from compression_eval.fixtures.errors import DataError

if TYPE_CHECKING:
    from kingfisher_sdk import Scanner

PACKAGE = "kingfisher-secret-scanner"


def missing(package: str) -> DataError:
    """Return the error that a package of the extra ``scrub`` is not there."""
    return DataError(
        f"the scrubber needs the package {package}; install it with: "
        "pip install 'compression_eval[scrub]'"
    )


def name_and_version(package: str) -> str:
    """Return name and version of a package that holds rules or words.

    Raises:
        DataError: It is not installed.
    """
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError as error:
        raise missing(package) from error


def detect(text: str) -> list[Hit]:
    """Return the secrets that the scanner's rules find in a text.

    Raises:
        DataError: The scanner is not installed.
    """
    data = _plain(text).encode("utf-8", "replace")
    found: list[tuple[int, int, str]] = []
    for finding in _scanner().scan(data):
        place = finding.location
        start, end = place["start_offset"], place["end_offset"]
        secret = finding.secret.encode("utf-8", "replace")
        inside = data.find(secret, start, max(end, start + len(secret)))
        if secret and inside >= 0:
            start, end = inside, inside + len(secret)
        found.append((start, end, finding.rule_id))
    return _in_characters(text, data, found)


@cache
def _scanner() -> "Scanner":
    try:
        from kingfisher_sdk import Rules, Scanner
    except ImportError as error:
        raise missing(PACKAGE) from error
    return Scanner(Rules(confidence="medium"), base64=False)


def _plain(text: str) -> str:
    """Return a text of the same length in bytes that is not taken for UTF-16 or a signature."""
    return text.replace("\x00", "\x01").replace("\ufeff", "\u200b")


def _in_characters(text: str, data: bytes, found: list[tuple[int, int, str]]) -> list[Hit]:
    """Turn places in the encoded text into places in the text."""
    if len(data) == len(text):
        return [Hit(start, end, rule, "secret") for start, end, rule in found]
    edges = sorted({0, *(edge for start, end, _ in found for edge in (start, end))})
    characters = {0: 0}
    for before, after in pairwise(edges):
        passed = len(data[before:after].decode("utf-8", "ignore"))
        characters[after] = characters[before] + passed
    return [Hit(characters[start], characters[end], rule, "secret") for start, end, rule in found]
