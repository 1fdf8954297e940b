"""Write verdicts into a bank and leave everything else in it as it is."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from compression_eval.fixtures.banks import Probe, ProbeBank, Qualification
from compression_eval.fixtures.errors import DataError
from compression_eval.fixtures.loading import load_bank
from compression_eval.fixtures.writing import write_whole

_INDENT = re.compile(r"^[{\[]\r?\n( +|\t)")


def write_verdicts(bank: Path, verdicts: Mapping[str, Qualification], target: Path) -> None:
    """Write a bank with new verdicts, as a whole or not at all.

    The file is read again, so that what was edited during the runs is kept; a verdict on a probe
    that was edited is then out of date by its digest.

    Args:
        bank: The bank's file.
        verdicts: By probe id; probes without one keep what they have.
        target: Where to write; the same file as a rule.

    Raises:
        DataError: The bank can no longer be read as one, or lacks one of the probes.
        OSError: The folder cannot be written to.
    """
    before = load_bank(bank)
    known = {probe.id for probe in before.probes}
    missing = sorted(set(verdicts) - known)
    if missing:
        raise DataError(f"{bank}: probes: {', '.join(missing)} went away while they were asked")
    text = bank.read_bytes().decode("utf-8-sig")
    data = json.loads(text)
    for item in data["probes"]:
        if found := verdicts.get(item["id"]):
            item["qualification"] = found.model_dump(mode="json")
    after = ProbeBank.model_validate(data)
    if _bare(after) != _bare(before):
        raise DataError(f"{bank}: could not be rewritten without a change of its probes")
    indent = _INDENT.match(text)
    written = json.dumps(data, indent=indent[1] if indent else 1, ensure_ascii=False)
    write_whole(target.resolve(), written + "\n")


def _bare(bank: ProbeBank) -> list[Probe]:
    return [probe.model_copy(update={"qualification": None}) for probe in bank.probes]
