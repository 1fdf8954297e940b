"""Pass ``paraphrase``: the first message of the user in other words, by the compressor model.

Only on request: it costs a model call, and what a model writes is not the same twice. It reads
text that has been scrubbed, and what it writes is scrubbed again.
"""

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from compression_eval.conversations.scrubbing.pseudonyms import Pseudonyms
from compression_eval.conversations.scrubbing.scrubber import Scrubbed, scrub
from compression_eval.fixtures.errors import DataError, shorten
from compression_eval.fixtures.models import Fixture

if TYPE_CHECKING:
    from inspect_ai.model import Model

NAME = "paraphrase"


async def paraphrase_first_message(
    scrubbed: Scrubbed, pseudonyms: Pseudonyms, model: "str | Model | None" = None
) -> Scrubbed:
    """Return a scrubbed conversation whose first user message a model has put in other words.

    One whose first message was paraphrased before is returned as it is.

    Args:
        scrubbed: The conversation after all other passes.
        pseudonyms: As in its scrub.
        model: Taken where the role ``compressor`` is not set.

    Raises:
        DataError: There is no model, it fails, or it returns nothing or only a part.
    """
    fixture = scrubbed.fixture
    source = fixture.source
    if source is not None and NAME in source.scrubbing:
        return scrubbed
    index = next(i for i, message in enumerate(fixture.messages) if message.role == "user")
    text = await _in_other_words(fixture.messages[index].text, fixture.name, model)
    data = fixture.model_dump(mode="json", exclude_unset=True)
    data["messages"][index]["content"] = text
    data["source"]["scrubbing"] = [*data["source"]["scrubbing"], NAME]
    again = scrub(Fixture.model_validate(data), scrubbed.settings, pseudonyms)
    scrubbed.report.add(again.report)
    scrubbed.report.note(NAME, NAME, "user", "", b"")
    return Scrubbed(
        again.fixture,
        scrubbed.report,
        scrubbed.moved,
        scrubbed.settings,
        scrubbed.original_name,
        scrubbed.texts,
    )


async def _in_other_words(text: str, name: str, model: "str | Model | None") -> str:
    from inspect_ai.model import get_model

    prompt = _prompt().replace("{message}", text)
    try:
        output = await get_model(role="compressor", default=model).generate(prompt)
    except Exception as error:  # every provider has its own errors
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise DataError(
            f"{shorten(name)}: the first message is not paraphrased: {reason[0]}"
        ) from error
    written = output.completion.strip()
    problem = output.error or ("" if written else "the model returned nothing")
    if not problem and output.stop_reason != "stop":
        problem = f"it stopped because of {output.stop_reason!r}"
    if problem:
        raise DataError(f"{shorten(name)}: the first message is not paraphrased: {problem}")
    return written


@cache
def _prompt() -> str:
    return (files(__package__) / "paraphrase.md").read_text(encoding="utf-8")
