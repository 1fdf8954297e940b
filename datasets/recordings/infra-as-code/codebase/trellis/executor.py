"""Carry out a saved plan."""

from typing import Any

from trellis import TrellisError, changes, config, policy, state
from trellis.interp import resolve
from trellis.planner import SYMBOLS, Action, Plan
from trellis.provider import Provider
from trellis.settings import Settings
from trellis.state import Entry, State


def apply(settings: Settings, plan: Plan, at: str | None = None) -> list[str]:
    """Do what the plan says and return a line for each thing done.

    Raises:
        TrellisError: The plan is out of date, a policy forbids it, there is no window, or the
            provider refused; what was done up to then stays done.
    """
    env = config.load(settings, plan.env)
    state.check_lock(settings, plan.env)
    current = state.load(settings, plan.env)
    if current.serial != plan.serial:
        raise TrellisError(f"{plan.env}: the plan is for serial {plan.serial}, the state is at {current.serial}")
    if env.digest != plan.digest:
        raise TrellisError(f"{plan.env}: the configuration was changed after the plan was made")
    found = policy.check(settings, env, plan)
    if found:
        raise TrellisError("\n".join(["refused by policy:", *found]))
    if env.windows:
        changes.require_window(settings, plan.env, at)
    provider = Provider(settings, plan.env, at)
    done: list[str] = []
    _run(plan, current, provider, done)
    current.save()
    return done


def _run(plan: Plan, current: State, provider: Provider, done: list[str]) -> None:
    def known(address: str, attribute: str) -> Any:
        entry = current.resources.get(address)
        if entry is None:
            return None
        return entry.id if attribute == "id" else entry.attrs.get(attribute)

    def report(each: Action, identifier: str) -> None:
        done.append(f"{SYMBOLS[each.action]:>4} {each.address} {identifier}")

    for each in reversed([each for each in plan.actions if each.action == "replace"]):
        provider.delete(str(each.id))
    old: list[tuple[Action, str]] = []
    for each in plan.actions:
        if each.action == "delete":
            old.append((each, str(each.id)))
            continue
        attrs = resolve(each.attrs, known)
        if each.action == "update":
            identifier = str(each.id)
            ignored = {name.removeprefix("tags.") for name in each.changes if name.startswith("tags.")}
            there = (provider.get(identifier) or {}).get("tags", {})
            attrs["tags"] = {key: value for key, value in {**there, **attrs["tags"]}.items() if key in attrs["tags"] or key not in ignored}
            provider.update(identifier, attrs)
        else:
            identifier = provider.create(each.type, attrs)
            if each.action == "replace_create_first":
                old.insert(0, (each, str(each.id)))
        current.resources[each.address] = Entry(identifier, provider.get(identifier) or {}, each.needs)
        report(each, identifier)
    for each, identifier in old:
        if provider.get(identifier) is not None:
            provider.delete(identifier)
        if each.action == "delete":
            current.resources.pop(each.address, None)
            report(each, identifier)
