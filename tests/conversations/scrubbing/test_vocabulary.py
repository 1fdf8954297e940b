import pytest

from compression_eval.conversations.scrubbing.vocabulary import Learnt, Vocabulary

# More than are searched for one by one.
MANY = [Learnt(f"other{number}-word", "user", "listed", any_case=True) for number in range(200)]
TEXTS = (
    ("jane-doe", "by JANE-doe, by jane-doe, and by jane-doer"),
    ("jane", r"C:\new\njane wrote \u4e2djane and xjane"),
    ("a.b_c", "at (a.b_c) and a.b_cd"),
    ("京子", "作者京子です"),
    ("José", "for José and JOSÉ"),
    ("+secret==", "x+secret==y"),
    ("@@", "with @@ and more"),
)


@pytest.mark.parametrize(("value", "text"), TEXTS)
@pytest.mark.parametrize("any_case", [False, True])
def test_many_values_are_found_where_few_are(value: str, text: str, any_case: bool) -> None:
    few, many = Vocabulary(), Vocabulary()
    for vocabulary, others in ((few, []), (many, MANY)):
        for learnt in (*others, Learnt(value, "user", "listed", any_case=any_case)):
            vocabulary.learn("handles", learnt)
    found = few.hits(text)
    assert found
    assert many.hits(text) == found


def test_the_first_spelling_that_was_learnt_says_what_a_value_is() -> None:
    vocabulary = Vocabulary()
    for learnt in (*MANY, Learnt("Otto", "person", "one"), Learnt("Otto", "user", "two")):
        vocabulary.learn("handles", learnt)
    assert [(hit.kind, hit.rule) for hit in vocabulary.hits("so Otto said")["handles"]] == [
        ("person", "one")
    ]


@pytest.mark.parametrize("any_case", [False, True])
def test_a_text_that_holds_many_values_gives_each_of_them_whole_and_longest_first(
    any_case: bool,
) -> None:
    vocabulary = Vocabulary()
    names = [f"mira{number}" for number in range(50)] + ["mira7-berg"]
    for name in names:
        vocabulary.learn("handles", Learnt(name, "user", "listed", any_case=any_case))
    text = " ".join(names) + r" mira7-bergen xmira3 \nmira4 mira5_x"
    found = [text[hit.start : hit.end] for hit in vocabulary.hits(text)["handles"]]
    assert found == [*names, "mira7", "mira4", "mira5"]
