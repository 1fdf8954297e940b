import time

import pytest

from compression_eval.text.printable import blank
from compression_eval.text.thinking import split_thinking

FENCED = "Its output is:\n```\n<think>x</think>\ny\n</think>\n```\nand so on."

THOUGHT = [
    ("<think>\nplan\n</think>\n\nAnswer.", "Answer."),
    ("<think>plan</think>Answer.", "Answer."),
    ("<think>plan, cut off", ""),
    ("plan\n</think>\n\nAnswer.", "Answer."),
    ("so it is 7</think>Answer.", "Answer."),
    ("所以是七。</think>答案", "答案"),
    ("plan\n</think>", ""),
    ("<think>a</think>b</think>c", "c"),
    ("Hi.\n<scratchpad>a</scratchpad>\nBye.", "Hi.\nBye."),
    ("Hi.\n<think>a", "Hi."),
    ("<think> the user asks; cut off", ""),
    ("<think></think>b", "b"),
    (
        "<think>draft\n```\nfoo\n</think>\nThe port is 8080:\n```\n8080\n```\n",
        "The port is 8080:\n```\n8080\n```",
    ),
    ("<think>a\n```\n</think>\nb\n```\nc\n```\n<think>d</think>\ne", "b\n```\nc\n```\ne"),
    ("<think>a `b</think>c `</think>` e", "c `</think>` e"),
    ("<THINKING mode='x'>a</thinking>b", "b"),
    ("<think>The tag is `</think>`, or", ""),
    ("<think>In code:\n```\n</think>\n```\n</think>\nAnswer.", "Answer."),
    ("[THINK]a[/THINK]b", "b"),
    ("a[/THINK]b", "b"),
    ("<seed:think>a</seed:think>b", "b"),
    ("◁think▷a◁/think▷b", "b"),
    ("<|START_THINKING|>a<|END_THINKING|>b", "b"),
    ("<|channel>thought\na<channel|>b", "b"),
    ("<|channel|>analysis<|message|>a<|end|>b", "b"),
    (
        "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>b",
        "b",
    ),
    ("<|channel|>analysis<|message|>a", ""),
    ("analysisWe need it.assistantfinalAnswer.", "Answer."),
]

MENTIONED = [
    "<reasoning> tags are stripped in parse.py; port 8080",
    "Hi.\n<reasoning>a",
    "<think> and </think> both go; port 8080",
    "It is removed.\n\n<thinking> tags never reach the log; port 8080.",
    "The parser splits at </think> and goes on.",
    "It ends at `</think>`. Then\n`<think>` begins.",
    'The tags are "<think>" and "</think>".',
    "It looks for its end (</think>).",
    "解析器在</think>处分割",
    FENCED,
    '{"reasoning": "says foo</think>bar", "score": 1}',
    "`List<Thought>` or Array<Thought>: a <b> c",
    "<plan><reasoning>why\n</reasoning></plan>",
    "analysisResult is its name",
    "  no marks\n",
]


@pytest.mark.parametrize(("text", "said"), THOUGHT)
def test_what_was_thought_is_not_said(text: str, said: str) -> None:
    split = split_thinking(text)
    assert split.said == said
    assert all(thought in text for thought in split.thoughts)
    assert split_thinking(said).said == said


@pytest.mark.parametrize("text", MENTIONED)
def test_a_mark_that_is_mentioned_splits_nothing(text: str) -> None:
    assert split_thinking(text) == (text, [], False)


def test_hostile_texts_are_split_in_one_pass() -> None:
    parts = ["<think>x", "</think>x", "<think>x</think>y", " </think> a", "`</think>", "<", "a"]
    parts += ["```\n</think>\n", "<think ", '"</think>"', "</think>" + " " * 50, "`x``y```z"]
    parts += [
        "<think>\n```py\n</think>x\n",
        "\n<reasoning>x",
        "<think>`</think>",
        "<think>\n```\n</think>\n",
    ]
    started = time.perf_counter()
    for part in parts:
        split_thinking(part * (100_000 // len(part)))
    assert time.perf_counter() - started < 10  # half a second; minutes where one is quadratic


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        (" \n\t\u00a0\u3000", True),
        ("\u2800\u3164\uffa0", True),
        ("\u200b\u200d\ufe0f\u0301\x07", True),
        ("8080", False),
        ("—", False),
        ("🙂", False),
        ("한", False),
    ],
)
def test_blank_means_nothing_to_see(text: str, nothing: bool) -> None:
    assert blank(text) is nothing
