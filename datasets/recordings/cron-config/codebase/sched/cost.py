"""Estimated cost of a job in EUR."""

from pathlib import Path

from sched.model import Job, Settings


def sources(root: Path, job: Job) -> int:
    """How many sources the prompt of ``job`` lists."""
    path = root / job.prompt
    if not path.is_file():
        return 0
    _, _, tail = path.read_text(encoding="utf-8").partition("## Sources\n")
    return sum(line.startswith("- ") for line in tail.splitlines())


def per_run(root: Path, job: Job, settings: Settings) -> float:
    tier = settings.defaults["tiers"][job.tier]
    words = job.max_words
    if words is None:
        words = (job.max_items or 0) * settings.defaults["cost"]["words_per_item"]
    return sources(root, job) * tier["per_source"] + words / 100 * tier["per_100_words"]


def per_week(root: Path, job: Job, settings: Settings) -> float:
    return per_run(root, job, settings) * len(job.days)
