import anyio
import pytest
from inspect_ai.model import Model, ModelOutput, ModelUsage, StopReason, get_model

from compression_eval.conversations.scrubbing import (
    Pseudonyms,
    Scrubbed,
    paraphrase_first_message,
)
from compression_eval.errors import DataError
from tests.conversations.scrubbing.building import conversation, scrubbed
from tests.fixtures.building import assistant, system, user

FIRST = "Pls fix the {braces} in /home/mmuster/api, limit 30!"


def model(output: ModelOutput | Exception) -> Model:
    def answer(*_: object) -> ModelOutput:
        if isinstance(output, Exception):
            raise output
        return output

    made = get_model("mockllm/model", custom_outputs=answer, memoize=False)
    assert isinstance(made, Model)
    return made


def done_by(used: Model, done: Scrubbed | None = None) -> Scrubbed:
    before = done or scrubbed(
        conversation(system(), user(FIRST), assistant("ok"), user(FIRST)), add=["paraphrase"]
    )
    return anyio.run(paraphrase_first_message, before, Pseudonyms(), used)


def says(text: str, stop: StopReason = "stop") -> ModelOutput:
    output = ModelOutput.from_content("mockllm/model", text)
    output.choices[0].stop_reason = stop
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
    return output


def test_the_first_message_alone_is_rewritten_and_what_comes_back_is_scrubbed() -> None:
    done = done_by(model(says("Please repair it, see /home/qvist/api and 10.20.30.40.")))
    texts = [message.text for message in done.fixture.messages]
    assert texts[1].startswith("Please repair it, see /home/user")
    assert "qvist" not in texts[1]
    assert "10.20.30.40" not in texts[1]
    assert texts[3].startswith("Pls fix")
    assert done.fixture.source is not None
    assert done.fixture.source.scrubbing[-1] == "paraphrase"


def test_it_is_not_done_twice() -> None:
    once = done_by(model(says("Please repair it.")))
    assert done_by(model(RuntimeError("not called")), once) is once


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (says("half", "max_tokens"), "it stopped because of 'max_tokens'"),
        (RuntimeError("no connection\nsecond line"), "is not paraphrased: no connection$"),
    ],
)
def test_a_failure_is_an_error(output: ModelOutput | Exception, message: str) -> None:
    with pytest.raises(DataError, match=message):
        done_by(model(output))
