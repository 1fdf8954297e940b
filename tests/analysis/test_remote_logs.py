"""Logs behind an address: written by Inspect to an S3 server, read by every command."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from inspect_ai.log import read_eval_log, write_eval_log

from compression_eval.cli import main
from tests.analysis.embedded import TAIL, embedded
from tests.buckets import empty_bucket
from tests.e2e import small

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """The address of an empty bucket."""
    with empty_bucket("logs") as address:
        yield address


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory, bucket: str) -> Path:
    """A folder with the logs of two arms, which are in the bucket too."""
    folder = tmp_path_factory.mktemp("here")
    fixture = small.write(folder / "data")
    for arm, given in (("tail", TAIL), ("none", {"compressor": "none"})):
        log = embedded(folder / "logs" / arm, fixture, **given)
        write_eval_log(read_eval_log(log.location), f"{bucket}/{arm}/{Path(log.location).name}")
    return folder / "logs"


def _rows(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _command(*args: str | Path) -> Result:
    return CliRunner().invoke(main, [str(arg) for arg in args])


def test_the_commands_say_the_same_of_logs_behind_an_address(
    bucket: str, here: Path, tmp_path: Path
) -> None:
    said = []
    places: list[Path | str] = [here, bucket]
    for at, place in enumerate(places):
        facts = _command("facts", place, "--json", tmp_path / f"{at}.json")
        compared = _command(
            *("compare", f"{place}/tail", "--to", f"{place}/none", "--format", "json")
        )
        assert facts.exit_code == 0, facts.output
        comparison = json.loads(compared.stdout)
        for side in ("base", "new"):
            comparison[side].pop("logs", None)
        told = json.loads((tmp_path / f"{at}.json").read_text())
        # Logs of the same second are listed in any order.
        rows = sorted(json.dumps(row) for value in told.values() for row in _rows(value))
        said.append([rows, comparison])
    assert said[0] == said[1]


def test_what_is_not_there_is_a_clean_error(bucket: str, here: Path) -> None:
    del here
    for missing, told in (
        (f"{bucket}/nothing", "no log of compression_eval in this folder"),
        (f"{bucket}/nothing.eval", "not a log of Inspect"),
        ("s3://elsewhere/logs", "no log of compression_eval in this folder"),
    ):
        result = _command("facts", missing)
        assert result.exit_code != 0
        assert f"{missing}: {told}" in result.output
