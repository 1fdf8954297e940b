import json

import pytest
from inspect_ai.model import ChatMessage

from compression_eval.embedded.answering import requested
from compression_eval.fixtures.banks import FormatKind
from compression_eval.grading.form import share_kept

from .conftest import Ask


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Answer as JSON with the keys `file` and `limit`.", "json"),
        ("Reply with a bulleted list.", "bullets"),
        ("Give a numbered list of the steps.", "numbered"),
        ("Answer in a Markdown table with columns `file` and `change`.", "table"),
        ("Give the names as a comma-separated list.", "comma_list"),
        ("Answer in one line.", "single_line"),
        ("请用 JSON 格式回答,键为 “文件” 和 “上限”。", "json"),
        ("请用项目符号列出。", "bullets"),
        ("请以编号列表给出。", "numbered"),
        ("用表格回答。", "table"),
        ("用逗号分隔回答。", "comma_list"),
        ("用一句话回答。", "single_line"),
        ("JSON で答えてください。キーは「ファイル」と「上限」。", "json"),
        ("箇条書きで答えてください。", "bullets"),
        ("番号付きリストで示してください。", "numbered"),
        ("表形式で答えてください。", "table"),
        ("カンマ区切りで答えてください。", "comma_list"),
        ("1行で答えてください。", "single_line"),
    ],
)
def test_requests_are_recognised_and_met(
    session: list[ChatMessage], ask: Ask, question: str, kind: FormatKind
) -> None:
    form = requested(question)
    assert form is not None
    assert form.kind == kind
    topic = "Which limit was set for the importer, and which file? / 重试 / リトライ "
    answer = ask(session, f"{topic}{question}")
    assert share_kept(answer, kind, list(form.keys), form.items)[0] == 1


@pytest.mark.parametrize(
    "question",
    [
        "Which table did the migration drop?",
        "What did the JSON parser report?",
        "Which key was missing in settings.json?",
        "Why did the first line fail?",
        "配置文件的格式错误是什么?",
    ],
)
def test_plain_questions_ask_for_no_format(question: str) -> None:
    assert requested(question) is None


def test_json_has_exactly_the_keys_asked_for(session: list[ChatMessage], ask: Ask) -> None:
    question = (
        "Which directory is off limits, and what is the retry limit? "
        "Reply as a JSON object with the keys `directory` and `retry_limit`."
    )
    answer = json.loads(ask(session, question))
    assert list(answer) == ["directory", "retry_limit"]
    assert "vendor/" in str(answer["directory"])
    assert "45" in str(answer["retry_limit"])


def test_json_keys_that_name_file_operations_hold_the_paths(
    session: list[ChatMessage], ask: Ask
) -> None:
    question = "Which files were touched? Answer as JSON with the keys `created` and `modified`."
    answer = json.loads(ask(session, question))
    assert answer == {"created": "docs/exit.md", "modified": "importer/rows.py"}


def test_a_comma_list_of_files_holds_the_files_only(session: list[ChatMessage], ask: Ask) -> None:
    answer = ask(session, "Which files were modified? Answer as a comma-separated list.")
    assert answer == "importer/rows.py"


def test_the_number_of_items_is_kept(session: list[ChatMessage], ask: Ask) -> None:
    answer = ask(session, "What happened to the importer? Answer with exactly three bullets.")
    assert len(answer.splitlines()) == 3
    assert all(line.startswith("- ") for line in answer.splitlines())


@pytest.mark.parametrize(
    ("answer", "kind", "keys", "items", "share"),
    [
        ('{"a": 1, "b": 2}', "json", ["a", "b"], None, 1.0),
        ('```json\n{"a": 1}\n```', "json", ["a", "b"], None, 0.75),
        ("a is 1", "json", ["a"], None, 0.0),
        ("- a\n- b", "bullets", [], 2, 1.0),
        ("- a\n- b", "bullets", [], 3, 0.5),
        ("Here:\n- a\n- b\n- c", "bullets", [], None, 0.75),
        ("1. a\n2. b", "numbered", [], None, 1.0),
        ("a\nb", "numbered", [], None, 0.0),
        ("| File | Change |\n|---|---|\n| a | b |", "table", ["file", "change"], None, 1.0),
        ("| File | What |\n|---|---|\n| a | b |", "table", ["file", "change"], None, 0.75),
        ("a | b", "table", [], None, 0.0),
        ("a, b, c", "comma_list", [], 3, 1.0),
        ("a and b", "comma_list", [], None, 0.0),
        ("just this", "single_line", [], None, 1.0),
        ("two\nlines", "single_line", [], None, 0.0),
        ("", "bullets", [], None, 0.0),
    ],
)
def test_formats_are_checked(
    answer: str, kind: FormatKind, keys: list[str], items: int | None, share: float
) -> None:
    assert share_kept(answer, kind, keys, items)[0] == pytest.approx(share)
