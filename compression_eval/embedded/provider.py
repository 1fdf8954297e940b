"""The embedded model: an Inspect model provider that runs no language model.

The request alone determines its task: a response schema named ``criterion_results`` asks for
grades, one named ``anchored_operations`` or a request for a summary asks for a summary, and
anything else is a question about the messages before it.
"""

import json
import re
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ChatMessageTool,
    ChatMessageUser,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.tool import ToolCall, ToolChoice, ToolInfo

from compression_eval.embedded.answering import MIN_SURE_SHARE, Answerer
from compression_eval.embedded.conversation import (
    Utterance,
    from_messages,
    from_records,
    json_lines,
    text_parts,
    user_records,
)
from compression_eval.embedded.grading import grade
from compression_eval.embedded.language import estimate_tokens
from compression_eval.embedded.summarising import operations, summarise

MODELS = ("lexical",)
GRADE_SCHEMA = "criterion_results"
OPERATIONS_SCHEMA = "anchored_operations"

_SUMMARY = re.compile(
    r"\bsummar(?:y|ies|i[sz]e[sd]?|i[sz]ing|i[sz]ation)\b|\bcompact(?:ion|ing)?\b"
    r"|总结|摘要|压缩|概括|要約|圧縮|まとめ",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"\bsummari[sz]e (?:the|this|our|all|what)\b"
    r"|\b(?:write|create|provide|produce|give|make)\b[^.?]{0,40}\bsummary of (?:the|this|our)\b"
    r"|(?:总结|概括|压缩)[^。？]{0,12}(?:对话|会话)|(?:对话|会话)[^。？]{0,12}(?:总结|摘要)"
    r"|(?:会話|対話)[^。？]{0,12}(?:要約|まとめ)",
    re.IGNORECASE,
)
_QUESTION_MARK = re.compile(r"[?？]")
_MIN_REQUEST = 1_200
"""Minimum characters of a request with instructions; a shorter text is a question."""

_MIN_MENTIONS = 3
_MAX_READ = 3
"""Messages that are read of those that a search finds."""

_FRAME = 4
"""Tokens of a message beside its text."""


class EmbeddedAPI(ModelAPI):
    """Answers, summarises and grades lexically; needs no network, credentials or GPU.

    The same request always gets the same reply. Indices of the last few conversations are kept
    in memory; nothing else is remembered between requests.
    """

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as its base class has it
        **model_args: object,
    ) -> None:
        """Create the model.

        Raises:
            ValueError: There is no embedded model of that name, or arguments were given.
        """
        if model_name not in MODELS:
            expected = ", ".join(f"embedded/{name}" for name in MODELS)
            raise ValueError(f"embedded/{model_name}: no such model; there is {expected}")
        if model_args:
            names = ", ".join(sorted(model_args))
            raise ValueError(f"embedded/{model_name} takes no model arguments, but got: {names}")
        super().__init__(model_name, base_url, api_key, [], config)
        self._answerer = Answerer()

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002 - named by Inspect
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput:
        """Return the reply to a request, with an estimate of its tokens as usage."""
        offered = set() if tool_choice == "none" else {tool.name for tool in tools}
        reply = self._reply(input, offered, config)
        output = ModelOutput.from_content(
            model=f"embedded/{self.model_name}", content=reply if isinstance(reply, str) else ""
        )
        message = output.message
        if not isinstance(reply, str):
            message.tool_calls = reply
            output.choices[0].stop_reason = "tool_calls"
        read = sum(_tokens_of(message) for message in input)
        written = _tokens_of(message) - _FRAME
        output.usage = ModelUsage(
            input_tokens=read, output_tokens=written, total_tokens=read + written
        )
        return output

    def _reply(
        self, messages: list[ChatMessage], offered: set[str], config: GenerateConfig
    ) -> str | list[ToolCall]:
        schema = config.response_schema.name if config.response_schema else ""
        if schema == GRADE_SCHEMA:
            return grade(messages)
        if schema == OPERATIONS_SCHEMA:
            data = user_records(messages)
            return operations(data[-1] if data else [])
        # The last message of the user is the request.
        asked = [at for at, each in enumerate(messages) if isinstance(each, ChatMessageUser)]
        at = asked[-1] if asked else 0
        last = messages[at] if asked else None
        parts = text_parts(last) if isinstance(last, ChatMessageUser) else []
        history = from_messages(messages[:at])
        request = "\n".join(parts)
        records = json_lines(request)
        if _asks_for_summary(request, records):
            return summarise(history, records)
        # Parts before the last one introduce the question; their words are no search terms.
        question = parts[-1] if parts else ""
        return self._fetched(history, messages[at + 1 :], question, offered)

    def _fetched(
        self, history: list[Utterance], since: list[ChatMessage], question: str, offered: set[str]
    ) -> str | list[ToolCall]:
        """Answer; or, where nothing fits the question, search once and read what is found.

        Args:
            history: What came before the question.
            since: The calls for it so far, and their results.
            question: The question.
            offered: Names of the tools that may be called.
        """
        turns = sum(message.role == "assistant" for message in since)
        results = [message for message in since if isinstance(message, ChatMessageTool)]
        found = [record for result in results for record in json_lines(result.text)]
        may_search = not turns and "search_history" in offered
        if may_search and not self._answerer.answer(history, question, MIN_SURE_SHARE).known:
            query = {"query": question}
            return [ToolCall(id="fetch-0", function="search_history", arguments=query)]
        if turns == 1 and "read_message" in offered:
            hits = list(dict.fromkeys(each["number"] for each in found if "number" in each))
            if hits:
                return [
                    ToolCall(id=f"fetch-{n}", function="read_message", arguments={"number": hit})
                    for n, hit in enumerate(hits[:_MAX_READ], 1)
                ]
        return self._answerer.answer([*history, *from_records(found)], question).text

    async def count_text_tokens(self, text: str) -> int:
        """Return the same estimate that usage is given in; the vocabulary of a tokenizer would
        have to be downloaded.
        """  # noqa: D205 - one sentence
        return estimate_tokens(text)

    def max_connections(self) -> int:
        """Return how many requests may wait at once; each is computed in turn."""
        return 32


def _tokens_of(message: ChatMessage) -> int:
    calls = getattr(message, "tool_calls", None) or []
    arguments = sum(estimate_tokens(json.dumps(call.arguments, default=str)) for call in calls)
    return estimate_tokens(message.text) + arguments + _FRAME


def _asks_for_summary(request: str, records: list[dict[str, Any]]) -> bool:
    if any("budget_tokens" in record for record in records):
        return True
    if len(request) >= _MIN_REQUEST and len(_SUMMARY.findall(request)) >= _MIN_MENTIONS:
        return True
    return _ORDER.search(request) is not None and _QUESTION_MARK.search(request) is None
