"""Environments and modules: from TOML to the resources that are wanted."""

import hashlib
import json
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis import TrellisError, schema
from trellis.interp import Scope, interpolate, tokens
from trellis.settings import Settings


@dataclass
class Lifecycle:
    """How a resource may change."""

    ignore: list[str] = field(default_factory=list)
    create_first: bool = False
    keep: bool = False


@dataclass
class Wanted:
    """One resource as the configuration wants it; attributes may hold tokens."""

    address: str
    type: str
    attrs: dict[str, Any]
    lifecycle: Lifecycle

    @property
    def needs(self) -> list[str]:
        """Return the addresses that this one refers to."""
        return sorted({address for address, _ in tokens(self.attrs)})


@dataclass
class Environment:
    """One environment and all it wants."""

    name: str
    fields: dict[str, Any]
    wanted: dict[str, Wanted]
    modules: dict[str, str]
    digest: str

    @property
    def windows(self) -> bool:
        """Tell whether an apply needs a window of the change calendar."""
        return bool(self.fields.get("windows"))


def names(settings: Settings) -> list[str]:
    """Return the environments there are."""
    return sorted(path.parent.name for path in settings.path("envs").glob("*/env.toml"))


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise TrellisError(f"{path.name}: no such file in {path.parent.name}/") from None
    except tomllib.TOMLDecodeError as error:
        raise TrellisError(f"{path.parent.name}/{path.name}: {error}") from error


def load(settings: Settings, name: str) -> Environment:
    """Read an environment with its modules.

    Raises:
        TrellisError: A file, variable, type or attribute is not what it must be.
    """
    if name not in names(settings):
        raise TrellisError(f"{name}: no such environment, expected one of {', '.join(names(settings))}")
    types = schema.load(settings)
    text = _toml(settings.path("envs", name, "env.toml"))
    fields = text["env"]
    if fields["name"] != name:
        raise TrellisError(f"envs/{name}/env.toml calls itself {fields['name']}")
    scope = Scope(settings, fields)
    wanted: dict[str, Wanted] = {}
    modules: dict[str, str] = {}
    for use in text.get("use", []):
        alias = use.get("as", use["module"])
        module = _toml(settings.path("modules", f"{use['module']}.toml"))
        version = module["module"]["version"]
        if use.get("version", version) != version:
            raise TrellisError(f"{name}: {alias} wants {use['module']} {use['version']}, modules/ has {version}")
        if alias in modules:
            raise TrellisError(f"{name}: {alias} is used twice")
        modules[alias] = f"{use['module']} {version}"
        for each in _expand(settings, scope, alias, module, use.get("vars", {}), fields):
            wanted[each.address] = each
    faults = [fault for each in wanted.values() for fault in schema.get(types, each.type).check(each.address, each.attrs)]
    if faults:
        raise TrellisError("\n".join(faults))
    plain = json.dumps({address: each.attrs for address, each in wanted.items()}, sort_keys=True)
    return Environment(name, fields, wanted, modules, hashlib.sha256(plain.encode()).hexdigest()[:12])


def _expand(
    settings: Settings, outer: Scope, alias: str, module: dict[str, Any], given: dict[str, Any], env: dict[str, Any]
) -> list[Wanted]:
    where = f"{env['name']}: {alias}"
    scope = Scope(settings, env, alias, where)
    scope.outputs = outer.outputs
    variables = module.get("variables", {})
    outer.where = where
    for name in given:
        if name not in variables:
            raise TrellisError(f"{where}: the module has no variable {name}")
    for name, rule in variables.items():
        if name in given:
            scope.variables[name] = interpolate(given[name], outer)
        elif "default" in rule:
            scope.variables[name] = rule["default"]
        else:
            raise TrellisError(f"{where}: the variable {name} is not given")
    blocks = []
    for kind, entries in module.get("resource", {}).items():
        for name, block in entries.items():
            block = dict(block)
            repeat = block.pop("for_each", None)
            items = None if repeat is None else interpolate(repeat, scope)
            if isinstance(items, list):
                items = {each: each for each in items}
            scope.keys[kind, name] = None if items is None else list(items)
            blocks.append((kind, name, block, items))
    found = []
    for kind, name, block, items in blocks:
        lifecycle = Lifecycle(**block.pop("lifecycle", {}))
        for key, value in ({None: None} if items is None else items).items():
            scope.each = None if key is None else (key, value)
            attrs = interpolate(block, scope)
            attrs["tags"] = {**env.get("tags", {}), **attrs.get("tags", {})}
            address = f"{alias}.{kind}.{name}" + ("" if key is None else f"[{key}]")
            found.append(Wanted(address, kind, attrs, lifecycle))
    scope.each = None
    outer.outputs[alias] = {key: interpolate(value, scope) for key, value in module.get("outputs", {}).items()}
    return found
