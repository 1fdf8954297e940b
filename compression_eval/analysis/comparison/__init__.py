"""Compare two arms: what differs, by how much, and whether it is more than noise."""

from collections.abc import Mapping

CONDITIONS: Mapping[str, str] = {
    "unfinished": "the run came to its end",
    "release": "scores of both releases mean the same",
    "fixtures": "the same conversations",
    "probes": "the same questions with the same answer keys",
    "question": "the same text around each question",
    "cycles": "as many compressions before each question",
    "min_removed": "the same gate for what counts as a compression",
    "rubric": "the same rubric",
    "language": "the rubric in the same language",
    "criteria": "the same choice of criteria",
    "grader": "the same graders with the same parameters",
    "grader_context": "graders saw the state on both sides, or on neither",
    "state_facts": "a model read which facts states contain on both sides, or on neither",
}
"""Conditions of a comparison, by the name that allows a violation."""
