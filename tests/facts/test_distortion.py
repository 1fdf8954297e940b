"""The same name with another value."""

import pytest

from compression_eval.facts.records import variants

POOL = ["max_connections=8", '"max_connections": 8']


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("max_connections=24", ["max_connections 24"]),
        ("`max_connections` is set to 24.", ["max_connections 24"]),
        ('{"max_connections": 80}', ["max_connections 80"]),
        ("| max_connections | 24 |", ["max_connections 24"]),
        ("max_connections=8.", []),
        ("max_connections of 8.0", []),
        ("max_connections: 24 -> 8", []),
        ("max_connections=8 -> 24", ["max_connections 24"]),
        ("max_connections went from 24 to 8", []),
        ("pool.max_connections=24", []),
        ("max_connections_total=24", []),
        ("max_connections", []),
        ("24", []),
        ("max_connections=24 and max_connections=24, max_connections=9", None),
    ],
)
def test_variants_of_a_setting(text: str, found: list[str] | None) -> None:
    expected = ["max_connections 24", "max_connections 9"] if found is None else found
    assert variants(POOL, text) == expected


@pytest.mark.parametrize(
    ("forms", "text", "found"),
    [
        (["Retry-After 2", "2 s"], "Retry-After: 5", ["retry-after 5"]),
        (["48 小时", "compress_after_hours = 48"], "compress_after_hours = 24", None),
        (["timeout 120", "timeout: 120"], "timeout 300", ["timeout 300"]),
        # Without a form that sets it apart as a name, a word before a number is not one.
        (["run 8815"], "run 8842", []),
        (["17 ranges"], "12 ranges", []),
        (["2026-02-24"], "2026-02-25", []),
        (["auth/session.py"], "auth/sessions.py", []),
        (["health_check_interval_s: int = 30"], "health_check_interval_s = 60", None),
    ],
)
def test_only_what_has_a_name_has_variants(
    forms: list[str], text: str, found: list[str] | None
) -> None:
    result = variants(forms, text)
    assert (result == found) if found is not None else len(result) == 1
