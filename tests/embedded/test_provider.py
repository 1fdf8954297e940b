import asyncio
import socket
from typing import Any

import pytest
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageUser,
    ContentText,
    get_model,
)

from .conftest import Ask, generate


def test_usage_is_always_set_and_adds_up(session: list[ChatMessage]) -> None:
    output = generate([*session, ChatMessageUser(content="What is the retry limit?")])
    assert output.usage is not None
    assert output.usage.input_tokens > 100
    assert output.usage.output_tokens > 0
    assert output.usage.total_tokens == output.usage.input_tokens + output.usage.output_tokens
    assert output.model == "embedded/lexical"


def test_tokens_are_counted_without_network(
    session: list[ChatMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was used")

    model = get_model("embedded/lexical")

    async def count() -> tuple[int, int]:
        monkeypatch.setattr(socket.socket, "connect", refuse)
        monkeypatch.setattr(socket, "getaddrinfo", refuse)
        return await model.count_tokens("abcdefgh"), await model.count_tokens(session)

    assert asyncio.run(count())[0] == 2
    assert asyncio.run(count())[1] > 100


def test_the_same_request_gets_the_same_reply(session: list[ChatMessage], ask: Ask) -> None:
    question = "Which test failed and with which error?"
    first = ask(session, question)
    ask(session[:4], question)
    assert ask(session, question) == first


def test_unknown_model_is_refused() -> None:
    with pytest.raises(ValueError, match="embedded/lexical"):
        get_model("embedded/neural")


def test_model_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="temperature_of_index"):
        get_model("embedded/lexical", temperature_of_index=1)


def test_only_what_was_said_before_the_question_is_used(ask: Ask) -> None:
    other: list[ChatMessage] = [
        ChatMessageUser(content="The staging port is 7431."),
        ChatMessageAssistant(content="Noted."),
    ]
    assert "7431" in ask(other, "What is the staging port?")
    unrelated: list[ChatMessage] = [ChatMessageUser(content="Rename the logo.")]
    assert "7431" not in ask(unrelated, "What is the staging port?")


@pytest.mark.parametrize(
    "question",
    [
        "When does the summary job run?",
        "At what time does the summary job run? "
        + "Name the summary job's hour and minute, not those of other jobs. " * 12,
        "要約ジョブ (summary job) は何時に実行されますか?",
    ],
)
def test_a_question_that_mentions_a_summary_is_still_a_question(ask: Ask, question: str) -> None:
    history: list[ChatMessage] = [ChatMessageUser(content="The summary job runs at 04:20.")]
    answer = ask(history, question)
    assert "04:20" in answer
    assert "##" not in answer


@pytest.mark.parametrize(
    "request_text",
    [
        "Please summarise the conversation so far.",
        "Write a short summary of the work for whoever goes on with it.",
        "请总结以上对话。",
        "ここまでの会話を要約してください。",
    ],
)
def test_an_order_to_summarise_is_followed(ask: Ask, request_text: str) -> None:
    history: list[ChatMessage] = [ChatMessageUser(content="The summary job runs at 04:20.")]
    answer = ask(history, request_text)
    assert "04:20" in answer
    assert answer.startswith("## Intent")


def test_an_introduction_in_a_part_of_its_own_is_not_asked_about(
    session: list[ChatMessage], ask: Ask
) -> None:
    question = "Which directory must never be touched?"
    introduction = (
        "Answer from the files you have read. Every rule about importer rows still holds."
    )
    content = [ContentText(text=introduction), ContentText(text=question)]
    output = generate([*session, ChatMessageUser(content=list(content))])
    assert output.completion == ask(session, question)
