"""What a farm is paid. Integer cents."""

from tankline.model import Pickup

CENTS_PER_LITRE_X100 = 4310
"""43.10 cents a litre, in hundredths of a cent."""
DEDUCTION_PERCENT = 100
"""A delivery with inhibitor is not paid at all (rule 7 of the co-operative)."""
HANDLING_CENTS = 18500
"""And the farm carries the disposal, a flat sum for each compartment."""


def pay(pickup: Pickup) -> int:
    return pickup.litres * CENTS_PER_LITRE_X100 // 100


def deduction(pickup: Pickup) -> int:
    """Cents a farm loses by a positive result."""
    return pay(pickup) * DEDUCTION_PERCENT // 100 + HANDLING_CENTS
