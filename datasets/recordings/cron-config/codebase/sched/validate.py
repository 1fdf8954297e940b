"""Checks of a set of jobs. Lines that start with E are errors, with W warnings."""

import re
from datetime import datetime, timedelta
from pathlib import Path

from sched import cost, zones
from sched.model import DAYS, Job, Settings
from sched.nextrun import runs

ITEMS = range(3, 21)
WORDS = range(120, 801)


def check(
    root: Path,
    jobs: list[Job],
    settings: Settings,
    now: datetime,
    weeks: int | None = None,
    include_paused: bool = False,
) -> list[str]:
    """Every problem of ``jobs``, errors of single jobs first."""
    live = [job for job in jobs if include_paused or job.state == "active"]
    found = [problem for job in jobs for problem in _form(root, job, settings)]
    if any(problem.startswith("E") for problem in found):
        return found
    weeks = weeks or settings.defaults["horizon_weeks"]
    found += [problem for job in live for problem in _reserved(job, settings, now, weeks)]
    found += _gaps(live, settings.defaults["gap_min"])
    found += _cap(root, live, settings)
    used = {job.prompt for job in jobs}
    for path in sorted((root / "prompts").glob("*.md")):
        name = path.relative_to(root).as_posix()
        if name not in used:
            found.append(f"W402 {name}: no job uses this prompt")
    return found


def _form(root: Path, job: Job, settings: Settings) -> list[str]:
    found = []
    if not re.fullmatch(r"[a-z]+(-[a-z]+)*", job.id):
        found.append(f"E104 {job.id}: an id is lower-case words joined by '-'")
    if unknown := [day for day in job.days if day not in DAYS]:
        found.append(f"E101 {job.id}: unknown weekday {unknown[0]!r}")
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", job.at):
        found.append(f"E102 {job.id}: time {job.at!r} is not HH:MM")
    if job.tier not in settings.defaults["tiers"]:
        found.append(f"E106 {job.id}: unknown tier {job.tier!r}")
    if job.channel not in settings.channels:
        known = ", ".join(settings.channels)
        found.append(f"E120 {job.id}: unknown channel {job.channel!r} (known: {known})")
    if (job.max_items is None) == (job.max_words is None):
        found.append(f"E112 {job.id}: exactly one of max_items and max_words is needed")
    if job.max_items is not None and job.max_items not in ITEMS:
        found.append(f"E113 {job.id}: max_items {job.max_items} is outside 3..20")
    if job.max_words is not None and job.max_words not in WORDS:
        found.append(f"E113 {job.id}: max_words {job.max_words} is outside 120..800")
    return found + _prompt(root, job)


def _prompt(root: Path, job: Job) -> list[str]:
    path = root / job.prompt
    if not path.is_file():
        return [f"E110 {job.id}: prompt {job.prompt} does not exist"]
    text = path.read_text(encoding="utf-8")
    wanted = "max_items" if job.max_items is not None else "max_words"
    other = "max_words" if wanted == "max_items" else "max_items"
    found = []
    for placeholder in ("since", wanted):
        if f"{{{{{placeholder}}}}}" not in text:
            found.append(f"E131 {job.id}: {job.prompt} does not use {{{{{placeholder}}}}}")
    if f"{{{{{other}}}}}" in text:
        found.append(f"E133 {job.id}: {job.prompt} uses {{{{{other}}}}}, the job sets {wanted}")
    if not cost.sources(root, job):
        found.append(f"E132 {job.id}: {job.prompt} lists no sources")
    return found


def _reserved(job: Job, settings: Settings, now: datetime, weeks: int) -> list[str]:
    length = timedelta(minutes=settings.defaults["runtime_min"])
    found = []
    for window in settings.reserved:
        hits = []
        for start in runs(job, now, weeks):
            if DAYS[start.weekday()] != window["day"]:
                continue
            opens, closes = (
                start.replace(hour=int(text[:2]), minute=int(text[3:]))
                for text in (window["start"], window["end"])
            )
            if start < closes and start + length > opens:
                hits.append(start)
        if hits:
            local = zones.to_local(job.tz, hits[0])
            found.append(
                f"E207 {job.id}: run of {local:%a %Y-%m-%d %H:%M} ({hits[0]:%H:%M}Z) meets reserved "
                f"window {window['name']} {window['start']}-{window['end']}Z "
                f"({len(hits)} runs in {weeks} weeks)"
            )
    return found


def _gaps(jobs: list[Job], gap: int) -> list[str]:
    found = []
    for day in DAYS:
        starts = sorted((job.at, job.id) for job in jobs if day in job.days)
        for (early, first), (late, second) in zip(starts, starts[1:]):
            apart = _minutes(late) - _minutes(early)
            if apart < gap:
                found.append(
                    f"E208 {second}: starts {day} {late}, {apart} min after {first} "
                    f"(at least {gap} needed)"
                )
    return found


def _cap(root: Path, jobs: list[Job], settings: Settings) -> list[str]:
    cap = settings.defaults["cost"]["weekly_cap_eur"]
    total = sum(cost.per_week(root, job, settings) for job in jobs)
    if cap and total > cap:
        return [f"E301 weekly cost {total:.3f} EUR is over the cap of {cap:.2f} EUR"]
    return []


def _minutes(text: str) -> int:
    return int(text[:2]) * 60 + int(text[3:])
