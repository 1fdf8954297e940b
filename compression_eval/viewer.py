"""How Inspect's viewer shows the samples of this eval."""

from collections.abc import Sequence

from inspect_ai.viewer import (
    SampleScoreView,
    ScoreColorScale,
    TaskSamplesColumn,
    TaskSamplesSort,
    TaskSamplesView,
    ViewerConfig,
)

_DIMENSIONS = {
    "knowledge": "knowledge",
    "overall": "overall",
    "accuracy": "accuracy",
    "context_awareness": "context",
    "artifact_trail": "artifact",
    "completeness": "complete",
    "continuity": "continuity",
    "instruction_following": "instruction",
}

_REFETCH = {
    "recall_after": "facts after fetching",
    "correct_after": "correct after fetching",
    "knowledge_after": "knowledge after fetching",
    "fetch_calls": "calls",
    "fetch_tokens": "tokens of fetching",
}

_BEFORE = ("recall_before", "correct_before")
"""Keys of the first answer, which other columns tell."""

_HIDDEN = ("tokens", "duration", "input", "target", "answer")


def viewer_config(
    *,
    verdicts: bool = False,
    trusted: bool = False,
    read: bool = False,
    refetch: bool = False,
) -> ViewerConfig:
    """Return one row per probe: its scores by dimension, then what happened to its facts.

    Args:
        verdicts: Whether some probe has a verdict, so that there is a column to show.
        trusted: Whether every conversation comes with this project. Of others the viewer shows
            all content as plain text: no Markdown, links or images.
        read: Whether a language model reads the states for facts.
        refetch: Whether the model answers once more with tools.
    """
    grade = ScoreColorScale(palette="good-high", min=0, max=5)
    share = ScoreColorScale(palette="good-high", min=0, max=1)
    score = TaskSamplesColumn.score
    columns = [
        *([score("qualification")] if verdicts else []),
        *(score("six_dimensions", name) for name in _DIMENSIONS),
        score("fact_retention", "fact_recall"),
        score("fact_retention", "fact_survival"),
        score("fact_retention", "fact_agreement", visible=read),
        *(score("refetch", key) for key in (_REFETCH if refetch else ())),
        *(score("refetch", key, visible=False) for key in (_BEFORE if refetch else ())),
        score("compression", "tokens_removed"),
        score("compression", "tokens_retained"),
        score("fact_retention", "fact_violations"),
        score("compression", "failed_states"),
    ]
    return rows(
        "Probes",
        columns,
        trusted=trusted,
        labels={
            **_DIMENSIONS,
            "fact_recall": "facts in answer",
            "fact_survival": "facts in state",
            "fact_agreement": "look-up agrees",
            **(_REFETCH if refetch else {}),
            "fact_violations": "stale values",
            "tokens_removed": "removed",
            "tokens_retained": "tokens left",
            "failed_states": "failed",
            **({"qualification": "qualified"} if verdicts else {}),
        },
        scales={
            **dict.fromkeys(_DIMENSIONS, grade),
            **dict.fromkeys(("fact_recall", "fact_survival", "fact_agreement"), share),
            **({"recall_after": share, "knowledge_after": grade} if refetch else {}),
            "fact_violations": ScoreColorScale(palette="good-low", min=0, max=1),
            "tokens_removed": ScoreColorScale(palette="neutral", min=0, max=1),
            **({"qualification": share} if verdicts else {}),
        },
    )


def rows(
    name: str,
    columns: Sequence[TaskSamplesColumn],
    *,
    labels: dict[str, str],
    scales: dict[str, ScoreColorScale],
    trusted: bool,
) -> ViewerConfig:
    """Return one row per sample.

    Args:
        name: Of the view.
        columns: Of the scores, in order; what tells the sample is before them.
        labels: Heads of the scores' columns.
        scales: Colours of the scores.
        trusted: As for `viewer_config`.
    """
    leading = (TaskSamplesColumn(id=name) for name in ("sampleStatus", "sampleId", "epoch"))
    hidden = (TaskSamplesColumn(id=name, visible=False) for name in _HIDDEN)
    view = TaskSamplesView(
        name=name,
        columns=[*leading, *columns, *hidden],
        sort=[TaskSamplesSort(column="sampleId", dir="asc")],
        multiline=False,
        compact_scores=True,
        score_labels=labels,
        score_color_scales=scales,
        color_scales_enabled=True,
    )
    return ViewerConfig(
        trust_content=trusted,
        task_samples_view=view,
        # In the order of the scorers, so that knowledge comes first.
        sample_score_view=SampleScoreView(default="grid"),
    )
