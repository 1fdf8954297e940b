"""The files of a history in the records of artifact probes."""

from compression_eval.compressors.registry import compressor_spec
from compression_eval.compressors.running import CompressionPlan
from compression_eval.fixtures.finding_files import shipped_fixtures
from compression_eval.fixtures.loading import load_pair
from compression_eval.probing.artifact_history import files_for


def test_only_artifact_probes_get_them_and_only_from_before_the_cut() -> None:
    pair = load_pair(shipped_fixtures()["401-debug"])
    probes = {probe.type: probe for probe in pair.bank.probes}
    early, late = (
        CompressionPlan(pair.fixture, [], (cut,), compressor_spec("tail"), []) for cut in (80, 178)
    )
    assert files_for(probes["recall"], late) == {}
    assert files_for(probes["artifact"], late)["infra/retry.py"] == "created"
    assert "infra/retry.py" not in files_for(probes["artifact"], early)
    assert files_for(probes["artifact"], early)["config/redis.py"] == "modified"
