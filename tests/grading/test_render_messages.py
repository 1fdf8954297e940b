from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentData,
    ContentImage,
    ContentReasoning,
    ContentText,
)
from inspect_ai.tool import ToolCall, ToolCallError

from compression_eval.record import render_messages


def test_roles_texts_calls_and_results_are_shown() -> None:
    messages: list[ChatMessage] = [
        ChatMessageSystem(content="You help."),
        ChatMessageUser(content=[ContentText(text="one"), ContentText(text="two")]),
        ChatMessageAssistant(
            content="Reading.",
            tool_calls=[
                ToolCall(id="c1", function="read_file", arguments={"path": "a.py", "名": "値"})
            ],
        ),
        ChatMessageTool(content="x = 1", tool_call_id="c1", function="read_file"),
        ChatMessageTool(
            content="", tool_call_id="c2", error=ToolCallError("timeout", "took too long")
        ),
    ]
    assert render_messages(messages) == (
        "[system]\nYou help.\n\n"
        "[user]\none\ntwo\n\n"
        '[assistant]\nReading.\n(calls) read_file {"path": "a.py", "名": "値"}\n\n'
        "[tool: read_file]\nx = 1\n\n"
        "[tool]\n(error) took too long"
    )


def test_what_tells_how_a_message_came_about_is_left_out() -> None:
    message = ChatMessageAssistant(
        id="strategy-id",
        content="plain",
        model="vendor/model",
        source="generate",
        metadata={"strategy": "anchored"},
    )
    assert render_messages([message]) == "[assistant]\nplain"


def test_parts_that_cannot_be_read_are_named() -> None:
    message = ChatMessageAssistant(
        content=[
            ContentReasoning(reasoning="thinking"),
            ContentReasoning(reasoning="cipher", redacted=True),
            ContentReasoning(reasoning="cipher", redacted=True, summary="in short"),
            ContentData(data={"encrypted": "cipher"}),
            ContentImage(image="data:image/png;base64,AAAA"),
        ]
    )
    text = render_messages([message])
    assert text == (
        "[assistant]\n(reasoning) thinking\n(reasoning that cannot be read)\n"
        "(reasoning) in short\n(data that cannot be read)\n(image)"
    )
