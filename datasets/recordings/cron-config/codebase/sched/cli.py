"""The command line."""

import argparse
from dataclasses import replace
from pathlib import Path

from sched import cost, store, validate
from sched.model import DAYS, Job, Settings
from sched.nextrun import now, runs

FIELDS = ("title", "days", "at", "channel", "tier", "max_items", "max_words", "window_days", "prompt")


def _days(text: str) -> list[str]:
    days = [day.strip().lower() for day in text.split(",")]
    return sorted(days, key=lambda day: DAYS.index(day) if day in DAYS else len(DAYS))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sched")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("add", "edit"):
        command = commands.add_parser(name)
        command.add_argument("id", nargs="+" if name == "edit" else 1)
        command.add_argument("--title", required=name == "add")
        command.add_argument("--days", type=_days, required=name == "add")
        command.add_argument("--at", required=name == "add")
        command.add_argument("--channel", required=name == "add")
        command.add_argument("--tier", required=name == "add")
        limit = command.add_mutually_exclusive_group(required=name == "add")
        limit.add_argument("--max-items", type=int)
        limit.add_argument("--max-words", type=int)
        command.add_argument("--window-days", type=int)
        command.add_argument("--prompt")
        command.add_argument("--why", required=True)
        if name == "edit":
            command.add_argument("--rename")
            state = command.add_mutually_exclusive_group()
            state.add_argument("--pause", metavar="REASON")
            state.add_argument("--resume", action="store_true")
    command = commands.add_parser("remove")
    command.add_argument("id")
    command.add_argument("--why", required=True)
    commands.add_parser("show").add_argument("id")
    command = commands.add_parser("list")
    command.add_argument("--state", choices=("active", "paused", "all"), default="all")
    command = commands.add_parser("validate")
    command.add_argument("id", nargs="?")
    command.add_argument("--weeks", type=int)
    command.add_argument("--include-paused", action="store_true")
    command = commands.add_parser("preview")
    command.add_argument("id", nargs="?")
    command.add_argument("--weeks", type=int, default=1)
    return parser


def main(argv: list[str] | None = None, root: Path | None = None) -> int:
    """Run one command; 0 for success, 1 for a refused change or an invalid set."""
    arguments = _parser().parse_args(argv)
    root = root or Path.cwd()
    jobs = {job.id: job for job in store.load(root)}
    wanted = getattr(arguments, "id", None)
    names = wanted if isinstance(wanted, list) else [wanted] if wanted else []
    if arguments.command != "add":
        for name in names:
            if name not in jobs:
                print(f"sched: no job {name!r}")
                return 1
    command = globals()[f"_{arguments.command}"]
    return int(command(root, jobs, Settings.load(root), arguments))


def _add(root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace) -> int:
    (name,) = arguments.id
    if name in jobs:
        print(f"sched: job {name!r} exists, use edit")
        return 1
    job = Job(
        id=name,
        title=arguments.title,
        days=arguments.days,
        at=arguments.at,
        tz=settings.defaults["timezone"],
        prompt=arguments.prompt or f"prompts/{name}.md",
        channel=arguments.channel,
        tier=arguments.tier,
        max_items=arguments.max_items,
        max_words=arguments.max_words,
        window_days=arguments.window_days or settings.defaults["window_days"],
    )
    return _commit(root, jobs, {name: job}, settings, arguments.why)


def _edit(root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace) -> int:
    if arguments.rename and (len(arguments.id) > 1 or arguments.rename in jobs):
        print("sched: --rename takes one job and an id that is free")
        return 1
    changed = {}
    for name in arguments.id:
        job = jobs[name]
        values = {field: getattr(arguments, field) for field in FIELDS}
        values = {field: value for field, value in values.items() if value is not None}
        if "max_items" in values:
            values["max_words"] = None
        if "max_words" in values:
            values["max_items"] = None
        if arguments.pause:
            values |= {"state": "paused", "pause_reason": arguments.pause}
        if arguments.resume:
            values |= {"state": "active", "pause_reason": None}
        changed[name] = replace(job, id=arguments.rename or name, **values)
    return _commit(root, jobs, changed, settings, arguments.why)


def _remove(root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace) -> int:
    store.delete(root, arguments.id)
    day = f"{now():%Y-%m-%d}"
    print(store.note(root, day, f"remove {arguments.id}", arguments.why), "removed", arguments.id)
    return 0


def _commit(
    root: Path, jobs: dict[str, Job], changed: dict[str, Job], settings: Settings, why: str
) -> int:
    """Write ``changed`` (by old id) if the whole set stays free of errors."""
    after = [job for name, job in jobs.items() if name not in changed] + list(changed.values())
    problems = validate.check(root, after, settings, now())
    if errors := [problem for problem in problems if problem.startswith("E")]:
        print("\n".join(errors))
        print("refused, nothing written")
        return 1
    for name, job in changed.items():
        what = _difference(jobs.get(name), job)
        if not what:
            print(f"{name}: no change")
            continue
        if name in jobs and name != job.id:
            store.delete(root, name)
        store.save(root, job)
        print(store.note(root, f"{now():%Y-%m-%d}", what, why), what)
    return 0


def _difference(before: Job | None, after: Job) -> str:
    if before is None:
        return f"add {after.id} {','.join(after.days)} {after.at} {after.channel}"
    old, new = before.as_dict(), after.as_dict()
    parts = [f"{key} {_text(old[key])} -> {_text(new[key])}" for key in old if old[key] != new[key]]
    return f"edit {before.id} {'; '.join(parts)}" if parts else ""


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, list) else "-" if value is None else str(value)


def _list(root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace) -> int:
    for job in jobs.values():
        if arguments.state in ("all", job.state):
            price = cost.per_week(root, job, settings)
            print(
                f"{job.id:<16} {','.join(job.days):<20} {job.at}  {job.channel:<13} {job.tier:<4}  "
                f"{job.limit:<9}  {price:.3f}  {job.state}"
            )
    live = [job for job in jobs.values() if job.state == "active"]
    total = sum(cost.per_week(root, job, settings) for job in live)
    print(f"{len(jobs)} defined, {len(live)} active, {total:.3f} EUR a week")
    return 0


def _show(root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace) -> int:
    job = jobs[arguments.id]
    for key, value in job.as_dict().items():
        if value is not None:
            print(f"{key:<13} {_text(value)}")
    print(f"{'sources':<13} {cost.sources(root, job)}")
    print(f"{'cost per run':<13} {cost.per_run(root, job, settings):.3f} EUR")
    return 0


def _validate(
    root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace
) -> int:
    chosen = list(jobs.values()) if not arguments.id else [jobs[arguments.id]]
    problems = validate.check(
        root, chosen, settings, now(), arguments.weeks, arguments.include_paused
    )
    if arguments.id:
        problems = [problem for problem in problems if not problem.startswith("W402")]
    weeks = arguments.weeks or settings.defaults["horizon_weeks"]
    errors = sum(problem.startswith("E") for problem in problems)
    for problem in problems:
        print(problem)
    print(f"{len(chosen)} jobs, {weeks} weeks ahead: {errors} errors, {len(problems) - errors} warnings")
    return 1 if errors else 0


def _preview(
    root: Path, jobs: dict[str, Job], settings: Settings, arguments: argparse.Namespace
) -> int:
    chosen = [jobs[arguments.id]] if arguments.id else list(jobs.values())
    starts = [
        (start, job)
        for job in chosen
        if job.state == "active"
        for start in runs(job, now(), arguments.weeks)
    ]
    for start, job in sorted(starts, key=lambda pair: (pair[0], pair[1].id)):
        print(f"{start:%Y-%m-%d %H:%M}  {job.id}")
    return 0
