"""Questions to the embedded model about a small session."""

import json
from typing import get_args

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageSystem,
    ChatMessageUser,
    ContentText,
)

from compression_eval.embedded.extracts import ANSWER_TOKENS, estimate_tokens
from compression_eval.fixtures.banks import FormatKind
from compression_eval.grading.form import share_kept
from compression_eval.text.lookup import Text

from .conftest import Ask, generate

UNKNOWN = "The context does not contain this."


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("Which directory must never be touched?", "vendor/"),
        ("Why were rows dropped?", "strip_nul returns an empty string"),
        ("Which assertion failed in the padding test?", "117 != 121"),
        ("Which files were modified?", "importer/rows.py"),
        ("Which files were created?", "docs/exit.md"),
        ("Which helper function was added to the importer?", "keep_padded"),
        ("What is to be documented next?", "exit codes"),
        ("Which command runs the tests?", "python -m unittest tests.test_rows"),
        ("What is the retry limit now?", "45"),
    ],
)
def test_facts_are_found(session: list[ChatMessage], ask: Ask, question: str, fact: str) -> None:
    assert Text(ask(session, question)).spells(fact)


@pytest.mark.parametrize(
    ("said", "question", "fact"),
    [
        ("缓存的上限改成 512 MB。", "缓存上限是多少?", "512"),
        ("再試行の上限は 45 回です。", "再試行の上限は何回ですか?", "45"),
    ],
)
def test_chinese_and_japanese_are_searched(ask: Ask, said: str, question: str, fact: str) -> None:
    noise = [ChatMessageUser(content=f"Line {at} of the plan.") for at in range(40)]
    assert fact in ask([*noise, ChatMessageUser(content=said)], question)


@pytest.mark.parametrize("history", [[], [ChatMessageUser(content="Rename the logo.")]])
def test_what_is_not_there_is_unknown(ask: Ask, history: list[ChatMessage]) -> None:
    assert ask(history, "What is the staging port?") == UNKNOWN


def test_a_few_words_of_the_system_prompt_are_no_answer(ask: Ask) -> None:
    prompt = [ChatMessageSystem(content="You are a coding agent that edits files and runs tests.")]
    assert ask(prompt, "Which flaky tests did the scheduler rework disable?") == UNKNOWN


def test_answers_stay_short(ask: Ask) -> None:
    lines = [f"The importer handles row {at} of the padded table." for at in range(900)]
    answer = ask([ChatMessageUser(content="\n".join(lines))], "How does the importer handle rows?")
    assert ANSWER_TOKENS / 2 < estimate_tokens(answer) <= ANSWER_TOKENS


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Answer as JSON with the keys file and limit.", "json"),
        ("Reply with a bulleted list.", "bullets"),
        ("Give a numbered list of the steps.", "numbered"),
        ("Answer in a Markdown table with the columns file, limit and change.", "table"),
        ("Give the names as a comma-separated list.", "comma_list"),
        ("Answer in one line.", "single_line"),
        ("只回一个 JSON 对象，键为 file、limit，不要写别的。", "json"),
        ("写成编号列表。", "numbered"),
        ("箇条書きで答えてください。", "bullets"),
        ("1行で答えてください。", "single_line"),
        ("Which table did the migration drop?", None),
        ("Which key was missing in settings.json?", None),
    ],
)
def test_a_form_that_is_asked_for_is_kept(
    session: list[ChatMessage], ask: Ask, question: str, kind: FormatKind | None
) -> None:
    answer = ask(session, f"Which limit and which file does the importer have? {question}")
    keys = ["file", "limit"] if kind in ("json", "table") else []
    for other in get_args(FormatKind) if kind is None else [kind]:
        assert share_kept(answer, other, keys, None)[0] == (kind is not None)


def test_a_key_that_names_a_file_operation_holds_its_paths(
    session: list[ChatMessage], ask: Ask
) -> None:
    question = "Which files were touched? Answer as JSON with the keys `created` and `modified`."
    touched = {"created": ["docs/exit.md"], "modified": ["importer/rows.py"]}
    assert json.loads(ask(session, question)) == touched


@pytest.mark.parametrize(
    "question",
    [
        "When does the summary job run?",
        "Name the summary job's hour and minute, not those of other jobs.",
        "要約ジョブ (summary job) は何時に実行されますか?",
    ],
)
def test_a_question_that_mentions_a_summary_is_a_question(ask: Ask, question: str) -> None:
    answer = ask([ChatMessageUser(content="The summary job runs at 04:20.")], question)
    assert "04:20" in answer
    assert "##" not in answer


def test_an_introduction_in_a_part_of_its_own_is_not_asked_about(
    session: list[ChatMessage], ask: Ask
) -> None:
    question = "Which directory must never be touched?"
    content = [
        ContentText(text="Every rule about importer rows holds."),
        ContentText(text=question),
    ]
    output = generate([*session, ChatMessageUser(content=list(content))])
    assert output.completion == ask(session, question)
