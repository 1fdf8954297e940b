"""Take an object that exists into the state."""

from trellis import TrellisError
from trellis.config import Environment
from trellis.provider import Provider
from trellis.state import Entry, State


def take(env: Environment, state: State, provider: Provider, address: str, identifier: str) -> None:
    """Give an object an address. The configuration must want something there."""
    if address not in env.wanted:
        raise TrellisError(f"{address}: the configuration of {env.name} does not want it")
    if address in state.resources:
        raise TrellisError(f"{address}: already in the state as {state.resources[address].id}")
    there = provider.get(identifier)
    if there is None:
        raise TrellisError(f"{identifier}: no such object in {env.name}")
    owner = next((key for key, entry in state.resources.items() if entry.id == identifier), None)
    if owner:
        raise TrellisError(f"{identifier}: already in the state as {owner}")
    state.resources[address] = Entry(identifier, there)
