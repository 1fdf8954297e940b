"""Job files and the audit log."""

import json
from pathlib import Path

from sched.model import DAYS, Job


def load(root: Path) -> list[Job]:
    """All jobs, in the order of the week."""
    jobs = [
        Job(**json.loads(path.read_text(encoding="utf-8")))
        for path in sorted((root / "jobs").glob("*.json"))
    ]
    return sorted(jobs, key=lambda job: (min(map(DAYS.index, job.days)), job.at, job.id))


def save(root: Path, job: Job) -> None:
    text = json.dumps(job.as_dict(), indent=2) + "\n"
    (root / "jobs" / f"{job.id}.json").write_text(text, encoding="utf-8")


def delete(root: Path, identifier: str) -> None:
    (root / "jobs" / f"{identifier}.json").unlink()


def note(root: Path, day: str, what: str, why: str) -> str:
    """Append one numbered line to the audit log and return its number."""
    log = root / "jobs" / "audit.log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    number = f"#{len(lines) + 1:04d}"
    lines.append(f"{number} {day} {what} | why: {why}")
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return number
