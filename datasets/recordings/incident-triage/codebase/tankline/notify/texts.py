"""Text messages. The wording is agreed with the farms' council; do not change it lightly."""

from tankline.labfeed.bottles import normalize_label
from tankline.model import Pickup

BLOCK = "Collection blocked: inhibitor found in bottle {bottle}, pick-up {pickup}. Call the quality desk."
UNBLOCK = "Block lifted: pick-up {pickup} was blocked in error. No deduction is made."
HOLD = "Bridge {bridge}, compartment {compartment}: please wait, result pending."


def block_notice(pickup: Pickup) -> str:
    return BLOCK.format(bottle=normalize_label(pickup.bottle), pickup=pickup.id)


def unblock_notice(pickup: Pickup) -> str:
    return UNBLOCK.format(pickup=pickup.id)


def hold_text(bridge: str, compartment: int) -> str:
    return HOLD.format(bridge=bridge, compartment=compartment)
