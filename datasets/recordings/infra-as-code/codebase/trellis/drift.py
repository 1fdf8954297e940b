"""Where the provider has something else than the state."""

import json

from trellis.planner import difference
from trellis.provider import Provider
from trellis.state import State


def find(state: State, provider: Provider) -> list[str]:
    """Return a line for each attribute that was changed behind the tool's back."""
    lines = []
    for address, entry in sorted(state.resources.items()):
        there = provider.get(entry.id)
        if there is None:
            lines.append(f"{address} ({entry.id}): gone")
            continue
        for name, (now, before) in difference(entry.attrs, there, []).items():
            lines.append(f"{address} ({entry.id}) {name}: {json.dumps(before)} -> {json.dumps(now)}")
    return lines


def unmanaged(state: State, provider: Provider) -> list[str]:
    """Return the objects that no address of the state owns."""
    owned = {entry.id for entry in state.resources.values()}
    return [
        f"{identifier} {each['type']} {each['attrs'].get('name', each['attrs'].get('cidr', ''))}"
        for identifier, each in sorted(provider.objects.items())
        if identifier not in owned
    ]


def refresh(state: State, provider: Provider) -> int:
    """Take over what the provider has; return how many resources changed."""
    count = 0
    for entry in state.resources.values():
        there = provider.get(entry.id)
        if there is not None and there != entry.attrs:
            entry.attrs = there
            count += 1
    return count
