"""``python -m trellis COMMAND``; see docs/trellis.md."""

import argparse
import json
import sys

from trellis import TrellisError, changes, config, cost, drift, executor, importer, planner, policy, settings, state
from trellis.provider import Provider


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 means done, 1 that something has to be mended, 2 that a plan has changes."""
    parser = argparse.ArgumentParser(prog="trellis")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, *, env: bool = True) -> argparse.ArgumentParser:
        made = commands.add_parser(name)
        if env:
            made.add_argument("--env", required=True)
        return made

    command("validate")
    made = command("plan")
    made.add_argument("-o", "--out")
    made.add_argument("--target")
    made.add_argument("--short", action="store_true")
    made = command("apply", env=False)
    made.add_argument("plan")
    made.add_argument("--at", help="local time, YYYY-MM-DDTHH:MM")
    command("drift")
    command("refresh")
    made = command("import")
    made.add_argument("address")
    made.add_argument("id")
    made = command("state")
    made.add_argument("what", choices=["list", "show", "mv", "rm"])
    made.add_argument("address", nargs="*")
    command("policy")
    made = command("cost", env=False)
    made.add_argument("--planned", action="store_true")
    command("windows", env=False)
    made = command("unlock")
    made.add_argument("id")
    options = parser.parse_args(arguments)
    try:
        return run(options, settings.load())
    except TrellisError as error:
        print(f"trellis: {error}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace, current: settings.Settings) -> int:
    """Carry out one command."""
    name = options.command
    if name == "apply":
        plan = planner.load(current.path(options.plan))
        for line in executor.apply(current, plan, options.at):
            print(line)
        print(f"{plan.env} serial {plan.serial} -> {state.load(current, plan.env).serial}")
        return 0
    if name == "cost":
        rows, total = cost.table(current, options.planned)
        for env, count, euros in rows:
            print(f"{env:10} {count:4} {euros:10.2f}")
        print(f"{'total':15} {total:10.2f}  cap {current.cost_cap}")
        return 0 if total <= current.cost_cap else 1
    if name == "windows":
        for row in changes.rows(current):
            print("  ".join(row.values()))
        return 0
    if name == "unlock":
        state.unlock(current, options.env, options.id)
        return 0
    env = config.load(current, options.env)
    mine = state.load(current, options.env)
    provider = Provider(current, options.env)
    if name == "validate":
        print(f"{env.name}: {len(env.wanted)} resources, {', '.join(f'{alias} ({module})' for alias, module in env.modules.items())} [config {env.digest}]")
    elif name == "plan":
        plan = planner.make(current, env, mine, provider, options.target)
        print(planner.show(plan, options.short))
        if options.out:
            current.path(options.out).write_text(plan.text())
        return 2 if plan.actions else 0
    elif name == "policy":
        found = policy.check(current, env, planner.make(current, env, mine, provider))
        print("\n".join(found) or f"{env.name}: no rule is broken")
        return 1 if found else 0
    elif name == "drift":
        lines = drift.find(mine, provider)
        print("\n".join(lines) or f"{env.name}: no drift")
        for line in drift.unmanaged(mine, provider):
            print(f"unmanaged: {line}")
    elif name == "refresh":
        state.check_lock(current, env.name)
        print(f"{drift.refresh(mine, provider)} resources taken over")
        mine.save()
    elif name == "import":
        state.check_lock(current, env.name)
        importer.take(env, mine, provider, options.address, options.id)
        mine.save()
        print(f"{options.address} is {options.id}, serial {mine.serial}")
    elif name == "state":
        return _state(options, current, mine)
    return 0


def _state(options: argparse.Namespace, current: settings.Settings, mine: state.State) -> int:
    if options.what == "list":
        for address, entry in sorted(mine.resources.items()):
            print(f"{entry.id:12} {address}")
        print(f"{len(mine.resources)} resources, serial {mine.serial}, {mine.lineage}")
    elif options.what == "show":
        for address in options.address:
            if address not in mine.resources:
                raise TrellisError(f"{address}: not in the state")
            print(json.dumps({address: mine.resources[address].plain()}, indent=1, sort_keys=True))
    else:
        state.check_lock(current, options.env)
        if options.what == "mv":
            old, new = options.address
            mine.move(old, new)
        else:
            for address in options.address:
                if mine.resources.pop(address, None) is None:
                    raise TrellisError(f"{address}: not in the state")
        mine.save()
        print(f"serial {mine.serial}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
