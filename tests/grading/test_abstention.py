import pytest

from compression_eval.fixtures.models import Language
from compression_eval.grading.judgement import abstained
from compression_eval.grading.rubric import load_rubric
from tests.grading.samples import probe

SILENT: list[tuple[Language, str]] = [
    ("en", ""),
    ("en", "..."),
    ("en", "I do not know."),
    ("en", "I'm sorry, but I don't know which port that was."),
    ("en", "The summary does not mention a port."),
    ("en", "**N/A**"),
    ("zh", "我不知道。"),
    ("ja", "分かりません。"),
]

SPOKEN: list[tuple[Language, str]] = [
    ("en", "It uses 3000."),
    ("en", "8080. I do not know who chose it."),
    ("en", "I do not know the port. " + "But the story of the proxy is long. " * 20),
    ("zh", "端口是 3000。"),
    ("en", "The proxy does not contain the port because it was moved to the gateway."),
    ("ja", "ポートは3000です。"),
    ("ja", "8080です。誰が決めたかは分かりません。"),
]


@pytest.mark.parametrize(("language", "answer"), SILENT + SPOKEN)
def test_only_saying_nothing_or_not_to_know_is_an_abstention(
    language: Language, answer: str
) -> None:
    found = abstained(answer, probe(), load_rubric(language).abstention)
    assert found == ((language, answer) in SILENT)
