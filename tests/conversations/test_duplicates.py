"""Copies of one session are told apart."""

from typing import Any

from compression_eval.conversations.duplicates import Identity, Named, Names, identity
from compression_eval.fixtures.models import Fixture
from tests.fixtures.building import fixture_data, plain_messages, user


def fixture(messages: list[Any] | None = None, **fields: Any) -> Identity:
    data = fixture_data(messages=messages or plain_messages(), **fields)
    return identity(Fixture.model_validate(data))


def test_names_are_given_once() -> None:
    names = Names()
    assert names.give(fixture(), "a") == Named("demo")
    assert names.give(fixture(), "b") == Named(None, "the same as demo from a")
    assert names.give(fixture(name="other"), "c") == Named("other")


def test_copies_of_a_session_say_how_they_are_related() -> None:
    names = Names()
    whole = plain_messages()
    names.give(fixture(whole), "a")
    assert names.give(fixture([*whole, user("More.")]), "b") == Named(
        "demo-2", "a later copy of demo from a: its 9 messages and 1 more"
    )
    assert names.give(fixture(whole[:5]), "c") == Named(
        "demo-3", "an earlier copy of demo-2 from b: the first 5 of its 10 messages"
    )
    assert names.give(fixture([*whole[:2], user("Else.")]), "d") == Named(
        "demo-4", "another copy of demo-3 from c: the first 2 messages are the same"
    )
    assert names.give(fixture([*whole[:2], user("Else.")], notes="x"), "e") == Named(
        "demo-5", "another copy of demo-4 from d: the same messages"
    )
    assert names.give(fixture(whole[:5]), "f").name is None


def test_copies_with_other_times_have_the_same_messages() -> None:
    names = Names()
    whole = plain_messages()
    names.give(fixture(whole), "a")
    later = [{**message, "metadata": {"timestamp": "2026-01-02"}} for message in whole]
    assert names.give(fixture(later), "b").note == "another copy of demo from a: the same messages"
