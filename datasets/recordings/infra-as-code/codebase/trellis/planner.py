"""From what is wanted and what is there to a list of actions."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trellis import TrellisError, graph, schema
from trellis.config import Environment
from trellis.interp import UNKNOWN, resolve
from trellis.provider import Provider
from trellis.settings import Settings
from trellis.state import State

SYMBOLS = {"create": "+", "update": "~", "replace": "-/+", "replace_create_first": "+/-", "delete": "-"}


@dataclass
class Action:
    """One thing to do. ``attrs`` are those wanted, with tokens where something is not known yet."""

    address: str
    type: str
    action: str
    id: str | None
    attrs: dict[str, Any]
    changes: dict[str, list[Any]]
    forced_by: list[str]
    needs: list[str]


@dataclass
class Plan:
    """What an apply would do."""

    env: str
    serial: int
    digest: str
    actions: list[Action]

    def count(self) -> str:
        """Return the numbers in one line."""
        kinds = [each.action for each in self.actions]
        replaced = kinds.count("replace") + kinds.count("replace_create_first")
        return f"{kinds.count('create')} to create, {kinds.count('update')} to update, {replaced} to replace, {kinds.count('delete')} to delete"

    def text(self) -> str:
        """Return it as it is saved."""
        plain = {"env": self.env, "serial": self.serial, "config": self.digest, "actions": [vars(each) for each in self.actions]}
        return json.dumps(plain, indent=1, sort_keys=True) + "\n"

    def hash(self) -> str:
        """Return what a reviewer can compare."""
        return hashlib.sha256(self.text().encode()).hexdigest()[:12]


def load(path: Path) -> Plan:
    """Read a saved plan."""
    if not path.is_file():
        raise TrellisError(f"{path}: no such plan")
    data = json.loads(path.read_text())
    return Plan(data["env"], data["serial"], data["config"], [Action(**each) for each in data["actions"]])


def difference(wanted: dict[str, Any], actual: dict[str, Any], ignore: list[str]) -> dict[str, list[Any]]:
    """Return what differs, by attribute: what is there and what is wanted. Tags are compared one by one."""
    found: dict[str, list[Any]] = {}
    for name, value in wanted.items():
        if name == "tags":
            there = actual.get("tags", {})
            for tag in sorted({*value, *there}):
                if value.get(tag) != there.get(tag) and f"tags.{tag}" not in ignore:
                    found[f"tags.{tag}"] = [there.get(tag), value.get(tag)]
        elif name not in ignore and actual.get(name) != value:
            found[name] = [actual.get(name), value]
    return found


def make(settings: Settings, env: Environment, state: State, provider: Provider, target: str | None = None) -> Plan:
    """Compare and return the actions in the order in which they would be done.

    ``target`` keeps only actions of addresses that begin with it.
    """
    types = schema.load(settings)
    actual = {address: provider.get(entry.id) for address, entry in state.resources.items()}
    kinds: dict[str, str] = {}
    planned: dict[str, dict[str, Any]] = {}
    actions: dict[str, Action] = {}

    def known(address: str, attribute: str) -> Any:
        if attribute == "id":
            if kinds.get(address) in ("create", "replace", "replace_create_first"):
                return None
            return state.resources[address].id if address in state.resources else None
        return (planned.get(address) or {}).get(attribute, (actual.get(address) or {}).get(attribute))

    for address in graph.order({address: each.needs for address, each in env.wanted.items()}):
        wanted = env.wanted[address]
        kind = types[wanted.type]
        attrs = planned[address] = resolve(wanted.attrs, known)
        there = actual.get(address)
        if there is None:
            kinds[address] = "create"
            actions[address] = Action(address, wanted.type, "create", None, wanted.attrs, {}, [], wanted.needs)
            continue
        changes = difference(attrs, there, wanted.lifecycle.ignore)
        if not changes:
            continue
        forced = [name for name in changes if kind.force_new(name)]
        kinds[address] = ("replace_create_first" if wanted.lifecycle.create_first else "replace") if forced else "update"
        actions[address] = Action(
            address, wanted.type, kinds[address], state.resources[address].id, wanted.attrs, changes, forced, wanted.needs
        )
        if forced and wanted.lifecycle.keep:
            raise TrellisError(f"{address} must be kept (lifecycle.keep), and {', '.join(forced)} would replace it")
    done = [each for each in actions.values()]
    gone = {address: entry for address, entry in state.resources.items() if address not in env.wanted}
    for address in reversed(graph.order({address: entry.needs for address, entry in gone.items()})):
        entry = gone[address]
        done.append(Action(address, address.split(".")[1], "delete", entry.id, {}, {}, [], entry.needs))
    if target:
        done = [each for each in done if each.address.startswith(target)]
    return Plan(env.name, state.serial, env.digest, done)


def show(plan: Plan, short: bool = False) -> str:
    """Return a plan for people."""
    lines = []
    for each in plan.actions:
        identifier = f" ({each.id})" if each.id else ""
        lines.append(f"{SYMBOLS[each.action]:>4} {each.address}{identifier}")
        if short:
            continue
        for name, (before, after) in each.changes.items():
            mark = "  # forces a new object" if name in each.forced_by else ""
            lines.append(f"       {name}: {json.dumps(before)} -> {after if after == UNKNOWN else json.dumps(after)}{mark}")
    lines.append(f"{plan.env} serial {plan.serial}: {plan.count()} [plan {plan.hash()}]")
    return "\n".join(lines)
