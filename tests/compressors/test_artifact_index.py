"""The index itself: merging, its budget, its headings."""

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageTool,
    ChatMessageUser,
)
from inspect_ai.tool import ToolCall

from compression_eval.compressors.artifacts import ArtifactIndex
from compression_eval.compressors.tokens import token_counter


def index_of(*commands: str) -> ArtifactIndex:
    messages: list[ChatMessage] = []
    for number, command in enumerate(commands):
        call = ToolCall(id=str(number), function="bash", arguments={"command": command})
        messages.append(ChatMessageAssistant(content="", tool_calls=[call]))
        messages.append(ChatMessageTool(content="", tool_call_id=str(number)))
    return ArtifactIndex().merged(messages)


def test_the_budget_is_kept_by_a_stated_rule() -> None:
    count = token_counter().count
    reads = [f"cat docs/chapter_{n}.md" for n in range(40)]
    index = index_of(
        "cat > lib.py <<'E'\ndef one(): pass\ndef two(): pass\nE", *reads, "echo x > b.py"
    )
    full = index.render(10_000, count)
    assert "- lib.py: one, two" in full
    assert full.count("docs/chapter") == 40
    assert "Left out" not in full
    half = index.render(count(full) // 2, count)
    assert count(half) <= count(full) // 2
    assert "- lib.py\n" in half, "names go before files"
    assert "chapter_39" in half
    assert "chapter_0." not in half, "the oldest go first"
    gone = 40 - half.count("docs/chapter")
    assert f"({gone} files read and left unchanged" in half.replace("Left out for room: ", "")
    tiny = index.render(1, count)
    assert "- " not in tiny
    small = index.render(count(tiny) + 20, count)
    assert "docs/chapter" not in small
    assert "- lib.py" in small
    assert "- b.py" in small


@pytest.mark.parametrize(
    ("said", "heading"),
    [
        ("Please look.", "Files created"),
        ("请看一下", "新建的文件"),
        ("確認してください", "新規作成したファイル"),
    ],
)
def test_headings_are_in_the_language_of_the_user(said: str, heading: str) -> None:
    call = ToolCall(id="1", function="bash", arguments={"command": "echo x > made.py"})
    messages: list[ChatMessage] = [
        ChatMessageUser(content=said),
        ChatMessageAssistant(content="", tool_calls=[call]),
        ChatMessageTool(content="", tool_call_id="1"),
    ]
    text = ArtifactIndex().merged(messages).render(800, token_counter().count)
    assert f"### {heading}\n- made.py" in text
