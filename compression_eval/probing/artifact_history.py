"""The files of a history, for the records of its artifact probes."""

from weakref import WeakKeyDictionary

from compression_eval.compressors.running import CompressionPlan
from compression_eval.fixtures.artifacts.history import history_files
from compression_eval.fixtures.banks import Probe

_FOUND: WeakKeyDictionary[CompressionPlan, dict[str, str]] = WeakKeyDictionary()


def files_for(probe: Probe, plan: CompressionPlan) -> dict[str, str]:
    """Return what `history_files` finds before a plan's cut; empty for other kinds of probes.

    It is found once per plan: reading a long history takes longer than asking a probe.
    """
    if probe.type != "artifact":
        return {}
    if plan not in _FOUND:
        _FOUND[plan] = history_files(plan.loaded().messages[: plan.cut])
    return dict(_FOUND[plan])
