"""Calls and results among the items of OpenAI's Responses API."""

from collections.abc import Callable, Mapping
from typing import Any

from compression_eval.conversations.drafts import Draft, DraftCall, Image
from compression_eval.conversations.fields import as_text, list_of, text_of
from compression_eval.conversations.ledger import Line
from compression_eval.conversations.readers.openai_content import content_of, image_of

Item = Mapping[str, Any]

HOSTED = frozenset(
    {
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
    }
)
"""Calls that the provider carries out: there is no item with their result."""

RESULTS = frozenset(
    {
        "function_call_output",
        "custom_tool_call_output",
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "tool_search_output",
        "mcp_tool_call_output",
    }
)


def _function(item: Item) -> tuple[str, str]:
    return _named(item), as_text(item.get("arguments"))


def _named(item: Item) -> str:
    name, namespace = text_of(item, "name"), text_of(item, "namespace")
    if not namespace:
        return name
    joint = "" if namespace.endswith(("_", ".", "/")) else "__"
    return f"{namespace}{joint}{name}"


def _custom(item: Item) -> tuple[str, str]:
    return _named(item), as_text({"input": as_text(item.get("input"))})


def _with(name: str, *keys: str) -> Callable[[Item], tuple[str, str]]:
    """Return a reader of calls whose arguments are an object in a field, or some fields."""

    def read(item: Item) -> tuple[str, str]:
        if len(keys) == 1 and isinstance(item.get(keys[0]), dict):
            return name, as_text(item[keys[0]])
        found = {key: item[key] for key in keys if item.get(key) is not None}
        return name, as_text(found)

    return read


def _mcp(item: Item) -> tuple[str, str]:
    server = text_of(item, "server_label")
    name = text_of(item, "name")
    return (f"{server}__{name}" if server else name), as_text(item.get("arguments"))


def _search(item: Item) -> tuple[str, str]:
    return "tool_search", as_text(item.get("arguments"))


CALLS: dict[str, Callable[[Item], tuple[str, str]]] = {
    "function_call": _function,
    "custom_tool_call": _custom,
    "local_shell_call": _with("local_shell", "action"),
    "shell_call": _with("shell", "action"),
    "apply_patch_call": _with("apply_patch", "operation"),
    "computer_call": _with("computer", "action", "actions"),
    "tool_search_call": _search,
    "web_search_call": _with("web_search", "action"),
    "file_search_call": _with("file_search", "queries"),
    "code_interpreter_call": _with("code_interpreter", "code"),
    "image_generation_call": _with("image_generation", "revised_prompt"),
    "mcp_call": _mcp,
}
"""Name and arguments of every kind of call."""


def call_of(item: Item, kind: str, number: int) -> DraftCall:
    """Return the call of an item.

    Args:
        item: The item.
        kind: Its type, one of `CALLS`.
        number: How many calls came before it, for those without an id.
    """
    name, arguments = CALLS[kind](item)
    identifier = text_of(item, "call_id") or text_of(item, "id") or f"{name or 'call'}-{number}"
    return DraftCall(identifier, name, arguments)


def result_of(item: Item, kind: str, line: Line) -> Draft:
    """Return the result that an item holds; without an id it answers no call."""
    identifier = text_of(item, "call_id") or text_of(item, "id")
    if kind == "tool_search_output":
        return Draft("tool", [as_text(list_of(item, "tools"))], call_id=identifier)
    return Draft("tool", _output(item.get("output"), line), call_id=identifier)


def own_result(item: Item, kind: str, call_id: str) -> Draft | None:
    """Return the result that a hosted call holds itself; None if it holds none."""
    content: list[str | Image] = []
    if kind == "image_generation_call" and text_of(item, "result"):
        content = [image_of("data:image/png;base64," + text_of(item, "result"))]
    elif kind == "mcp_call":
        content = [as_text(item.get("output")), as_text(item.get("error"))]
    elif kind == "code_interpreter_call":
        content = _outputs(list_of(item, "outputs"))
    elif kind == "file_search_call" and list_of(item, "results"):
        content = [as_text(list_of(item, "results"))]
    found = [part for part in content if part]
    return Draft("tool", found, call_id=call_id) if found else None


def _outputs(values: list[Any]) -> list[str | Image]:
    return [
        image_of(text_of(value, "url"))
        if text_of(value, "type") == "image"
        else text_of(value, "logs")
        for value in values
    ]


def _output(value: Any, line: Line) -> list[str | Image]:
    """Return what a tool gave back.

    It is a text, a list of parts, a list of what commands printed, a screenshot, or in old files
    an object with ``content``.
    """
    if isinstance(value, dict) and "content" in value:
        return content_of(value["content"], line)
    if isinstance(value, dict) and text_of(value, "type") == "computer_screenshot":
        return content_of([value], line)
    if isinstance(value, list) and any("stdout" in part for part in _objects(value)):
        return [as_text(value)]
    return content_of(value, line)


def _objects(values: list[Any]) -> list[dict[str, Any]]:
    return [value for value in values if isinstance(value, dict)]
