"""Superseded and forbidden values that an answer or a state gives as current."""

import pytest

from compression_eval.facts import stale, stated
from compression_eval.facts.stale import stale_forms, stale_values, violations, wrong_values
from compression_eval.fixtures.banks import ExpectedFact
from compression_eval.fixtures.models import Language
from compression_eval.grading.rubric import value_markers
from compression_eval.text import matching
from tests.grading.samples import probe

EN = value_markers("en")

CURRENT: list[tuple[Language, str]] = [
    ("en", "The service uses port 3000."),
    ("en", "It was set to 3000."),
    ("en", "The port was 3000."),
    ("en", "Port 8080 was replaced by 3000."),
    ("en", "Previously 8080, now 3000."),
    ("en", "It changed from 8080 to 3000."),
    ("en", "The old port is documented elsewhere. The service listens on 3000."),
    ("en", "It is not 8080 but 3000."),
    ("en", "8080 -> 3000"),
    ("en", '{"old_port": 8080, "port": 3000}'),
    ("en", "| service | 3000 |"),
    ("en", "- port: 3000\n- file: gateway.toml"),
    ("en", "The port is 3000; it was first 3000 too."),
    ("en", "It is 3000 (previously 8080)."),
    ("en", "The scold in the log says 3000."),
    ("en", "It is 3000 (from March on)."),
    ("en", "Port (from .env): 3000"),
    ("en", "| port (first listener) | 3000 |"),
    ("en", "Clients give up at once. The port is 3000."),
    ("en", "Clients give up after a look at 3000."),
    ("en", "The config still shows port 3000."),
    ("en", "Port 3000 would have to be opened."),
    ("en", "Previously 8080, then 3000."),
    ("en", "It was 8080 (a slip), then 3000."),
    ("en", "(a) Previously 8080, then 3000."),
    ("zh", "服务使用 3000 端口。"),
    ("zh", "端口原来是 8080，现在是 3000。"),
    ("zh", "端口由 8080 改为 3000。"),
    ("zh", "旧的配置见文档。端口为3000。"),
    ("ja", "サービスはポート3000を使います。"),
    ("ja", "当初は8080、現在は3000です。"),
    ("ja", "8080ではなく3000です。"),
    ("ja", "8080から3000に変更しました。"),
]

PAST: list[tuple[Language, str]] = [
    ("en", "The service uses port 8080."),
    ("en", "It changed from 3000 to 8080."),
    ("en", "It was 3000 at first, now 8080."),
    ("en", "It was 3000 before it became 8080."),
    ("en", "The port is 8080 (previously 3000)."),
    ("en", "The port is 8080 (was 3000)."),
    ("en", "The port is 8080 (it was 3000 before, a slip of mine)."),
    ("en", "The port is 8080. It was moved last from 3000, for the new gateway."),
    ("en", "8080, not 3000"),
    ("en", "8080 instead of 3000"),
    ("en", "It uses 8080; the original 3000 clashed."),
    ("en", "3000 was replaced by 8080."),
    ("en", "3000 -> 8080"),
    ("en", "3000 → 8080"),
    ("en", "Initially, the team chose 3000."),
    ("en", "They no longer use 3000."),
    ("en", '{"old_port": 3000, "port": 8080}'),
    ("en", "We used 3000 originally, then 8080."),
    ("en", "Port 30001 is for tests."),
    ("en", "8080 (before that 2000, then 3000)"),
    ("en", "8080 (it went 2000, 3000, 8080)"),
    ("en", "8080. Why it was moved last (from 3000) I do not know."),
    ("en", "8080 (first 3000, then corrected)"),
    ("en", "8080 holds from March on (before it was 3000)."),
    ("en", "At 8080. 3000 was given up because it clashed."),
    ("en", "8080; the user gave up 3000 as no good."),
    ("en", "8080, in place of 3000."),
    ("en", "8080 (3000 is void)."),
    ("en", "8080. The proposed 3000 was not wanted."),
    ("en", "With 3000 the proxy would have failed, so it is 8080."),
    ("en", "8080, after 3000 and 3001 had been planned."),
    ("en", "8080. 3000, chosen first, clashed."),
    ("en", "8080 is what holds; the runbook still shows 3000."),
    ("en", ""),
    ("zh", "端口从 3000 改为 8080。"),
    ("zh", "最初是 3000，现在是 8080。"),
    ("zh", "现在用 8080，而不是 3000。"),
    ("zh", "3000 已废弃，改用 8080。"),
    ("ja", "ポートは3000から8080に変更しました。"),
    ("ja", "当初は3000でしたが、現在は8080です。"),
    ("ja", "3000ではなく8080です。"),
    ("ja", "3000 → 8080"),
]


@pytest.mark.parametrize(("language", "answer"), CURRENT + PAST)
def test_only_a_superseded_value_given_as_current_is_a_violation(
    language: Language, answer: str
) -> None:
    expected = ["3000"] if (language, answer) in CURRENT else []
    assert violations(probe(), answer, value_markers(language)) == expected


def test_forbidden_values_count_in_every_form_once() -> None:
    asked = probe(forbidden_facts=[{"fact": "Memcached", "any_of": ["memcache"]}])
    answer = "The cache is memcache. Again: Memcached, at 8080."
    assert violations(asked, answer, EN) == ["Memcached"]
    assert violations(asked, "Memcached was rejected.", EN) == []
    assert [wrong.value for wrong in wrong_values(asked)] == ["3000", "Memcached"]


def test_a_wrong_value_inside_a_right_one_is_not_held_against_the_answer() -> None:
    asked = probe(expected_facts=[{"fact": "src/auth/login.py", "superseded": ["login.py"]}])
    assert violations(asked, "It is src/auth/login.py.", EN) == []
    assert violations(asked, "It is login.py.", EN) == ["login.py"]


def test_a_probe_without_such_values_has_none() -> None:
    asked = probe(expected_facts=["8080"])
    assert wrong_values(asked) == []
    assert violations(asked, "3000", EN) == []


def test_hostile_answers_are_only_text() -> None:
    asked = probe(expected_facts=[{"fact": "(a|b)+", "superseded": ["[x]{9}"]}])
    assert violations(asked, "it is [x]{9} " + "(" * 500, EN) == ["[x]{9}"]
    assert violations(asked, "\ue001" * 50 + "\x00", EN) == []


@pytest.mark.parametrize("phrase", ["it was changed from 3000 to 8080 and ", "it is 3000 "])
def test_a_repeated_phrase_is_read_in_proportion_to_its_length(
    phrase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def counted(text: str) -> matching.Text:
        nonlocal read
        read += len(text)
        return matching.Text(text)

    for module in (stale, stated):
        monkeypatch.setattr(module, "Text", counted)
    asked = probe()
    costs = []
    for times in (100, 200, 400):
        read = 0
        violations(asked, phrase * times, EN)
        costs.append(read)
    # Quadratic would be 16; the search for where the right value last stands has a logarithm.
    assert costs[2] < 6 * costs[0]


def fact(**fields: object) -> ExpectedFact:
    return ExpectedFact.model_validate(fields)


POOL = fact(
    fact="max_connections=8", any_of=["max_connections: 8"], superseded=["max_connections=24", "24"]
)


@pytest.mark.parametrize(
    ("given", "value", "forms"),
    [
        (POOL, "24", ("max_connections=24", "max_connections:24")),
        (POOL, "max_connections=24", ("max_connections=24", "max_connections:24")),
        (fact(fact="360 s", any_of=["360"], superseded=["240"]), "240", ("240 s",)),
        (fact(fact="70 s", any_of=["70 seconds"]), "47 s", ("47 s", "47 seconds")),
        (fact(fact="attempts=3", any_of=["3 attempts"]), "attempts=5", ("attempts=5",)),
        (fact(fact="w3"), "canary on w1", ("canary on w1",)),
        (fact(fact="Mon 07:20"), "Mon 06:30", ("Mon 06:30",)),
        (fact(fact="prompts/new.md"), "prompts/old.md", ("prompts/old.md",)),
        # A bare number of a fact without one is nothing that could be looked for.
        (fact(fact="the weekend"), "24", ()),
    ],
)
def test_by_what_a_superseded_value_is_recognised(
    given: ExpectedFact, value: str, forms: tuple[str, ...]
) -> None:
    assert stale_forms(given, value) == forms


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "- pool: max_connections=24", ["max_connections=24", "24"]),
        ("en", "- max_connections: 24", ["max_connections=24", "24"]),
        ("en", "- max_connections was changed from max_connections=24 to a lower value.", []),
        ("en", "- max_connections=24 was replaced", []),
        ("en", "- 24 workers are up", []),
        ("en", "- nothing of it", []),
        ("zh", "不再是 max_connections=24", []),
        ("zh", "max_connections=24", ["max_connections=24", "24"]),
    ],
)
def test_what_a_state_gives_as_current(language: Language, text: str, found: list[str]) -> None:
    assert stale_values(POOL, matching.Text(text), value_markers(language)) == found
