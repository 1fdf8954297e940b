"""Rules that a plan has to keep (policies/rules.toml), and agreed exceptions (policies/exceptions.toml)."""

import csv
import ipaddress
import json
import tomllib
from collections.abc import Iterator
from typing import Any

from trellis.config import Environment
from trellis.planner import Action, Plan
from trellis.settings import Settings


def check(settings: Settings, env: Environment, plan: Plan) -> list[str]:
    """Return a line for each rule that the plan breaks."""
    rules = tomllib.loads(settings.path("policies", "rules.toml").read_text())["rule"]
    exceptions = tomllib.loads(settings.path("policies", "exceptions.toml").read_text()).get("exception", [])
    today = settings.snapshot[:10]
    found = []
    for each in plan.actions:
        if each.action != "create":
            continue
        for rule in rules:
            if env.fields["stage"] not in rule.get("stages", [env.fields["stage"]]):
                continue
            for fault in _faults(settings, rule, env, each):
                if not _excepted(exceptions, rule["id"], env.name, each.address, today):
                    found.append(f"{rule['id']} {each.address}: {fault}")
    return found


def _excepted(exceptions: list[dict[str, Any]], rule: str, env: str, address: str, today: str) -> bool:
    return any(
        each["rule"] == rule and each["env"] == env and each["address"] == address and today <= each["until"] for each in exceptions
    )


def _faults(settings: Settings, rule: dict[str, Any], env: Environment, action: Action) -> Iterator[str]:
    kind = rule["kind"]
    if rule.get("type", action.type) != action.type:
        return
    value = action.attrs.get(rule.get("attribute", ""))
    if kind == "min" and isinstance(value, int) and value < rule["value"]:
        yield f"{rule['attribute']} is {value}, at least {rule['value']}"
    if kind == "max" and isinstance(value, int) and value > rule["value"]:
        yield f"{rule['attribute']} is {value}, at most {rule['value']}"
    if kind == "equals" and value != rule["value"]:
        yield f"{rule['attribute']} is {json.dumps(value)}, must be {json.dumps(rule['value'])}"
    if kind == "tag" and rule["tag"] not in action.attrs.get("tags", {}):
        yield f"tag {rule['tag']} is missing"
    if kind == "source" and value:
        for source in value:
            if source in rule["forbidden"]:
                yield f"source {source} is not allowed for port {action.attrs['port']}"
    if kind == "assigned" and value:
        for text in value if isinstance(value, list) else [value]:
            yield from _unassigned(settings, text, env.name)
    if kind == "partner" and value:
        mine = ipaddress.ip_network(value)
        for row in _ranges(settings):
            if row["status"] == "partner" and mine.overlaps(ipaddress.ip_network(row["range"])):
                yield f"{value} overlaps {row['range']} ({row['holder']})"
    if kind == "actions" and value:
        for statement in json.loads(value)["statements"]:
            for each in statement["actions"]:
                if each in rule["forbidden"]:
                    yield f"action {each} in statement {statement['name']}"
    if kind == "no_delete" and action.action in ("delete", "replace", "replace_create_first"):
        yield f"{action.action} is not allowed in {env.fields['stage']}"


def _ranges(settings: Settings) -> list[dict[str, str]]:
    with settings.path("data", "ipam.csv").open() as file:
        return list(csv.DictReader(file))


def _unassigned(settings: Settings, text: str, env: str) -> Iterator[str]:
    mine = ipaddress.ip_network(text)
    rows = _ranges(settings)
    if any(row["status"] == "assigned" and row["holder"] == env and mine.subnet_of(ipaddress.ip_network(row["range"])) for row in rows):
        return
    others = [row for row in rows if mine.overlaps(ipaddress.ip_network(row["range"])) and row["status"] != "pool"]
    said = "; ".join(f"{row['range']} is {row['status']} to {row['holder']}" for row in others) or "nothing assigned there"
    yield f"{text} is not assigned to {env} in data/ipam.csv ({said})"
