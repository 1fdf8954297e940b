"""Uncertainty budgets."""

from decimal import Decimal

from gaugeyard import standards
from gaugeyard.common import CalibrationError, dec, round_u, root_sum

ROOT_12 = Decimal(12).sqrt()


def resolution(step):
    """Standard uncertainty of a digital step."""
    return dec(step) / ROOT_12


def combine(type_a, step, standard):
    """Combined standard uncertainty of a point: scatter, resolution, reference standard."""
    reference = standards.find(standard)
    if reference is None:
        raise CalibrationError(f"no reference standard {standard}", "C31")
    return root_sum([type_a, resolution(step), reference.u])


def table(type_a, step, standard):
    """Return the lines of a budget as text."""
    reference = standards.find(standard)
    if reference is None:
        return []
    parts = [("scatter", dec(type_a)), ("resolution", resolution(step)), (standard, reference.u)]
    return [f"{name:<12} {round_u(value)}" for name, value in parts]
