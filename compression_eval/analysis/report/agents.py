"""The report of an agent's runs: one page, its Markdown, its figures and a chart."""

from collections.abc import Sequence
from importlib.resources import files

from compression_eval.analysis.agent_runs import AgentArm, arms_json, arms_page
from compression_eval.analysis.report.charts import HALF, Drawing, drawn, looks, scattered
from compression_eval.analysis.report.tradeoff import Point
from compression_eval.analysis.statistics.intervals import arm_mean
from compression_eval.text.printable import clean
from compression_eval.text.tables import as_markdown

_MAX_TEXT = 600


def agent_report_files(arms: Sequence[AgentArm]) -> dict[str, bytes]:
    """Return the files of a report on an agent's runs, by name."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    page = files(__package__) / "page"
    template, style = (
        (page / name).read_text(encoding="utf-8") for name in ("agents.html.jinja", "report.css")
    )
    chart = drawn("tokens", _score_and_tokens(arms))
    # Markup is only what is ours: the style, and a chart, whose texts Vega escapes.
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean(value, _MAX_TEXT) if type(value) is str else value,
    )
    sections = arms_page(arms)
    html = environment.from_string(template).render(
        sections=sections,
        task=arms[0].logs[0].header.eval.task,
        chart=chart,
        svg=Markup(chart.svg),  # noqa: S704
        style=Markup(style),  # noqa: S704
    )
    texts = {
        "index.html": html,
        "report.md": as_markdown(arms_page(arms, inline=True)),
        "figures.json": arms_json(arms),
        "charts/tokens.svg": chart.svg,
    }
    encoded = {name: text.encode("utf-8", "replace") for name, text in texts.items()}
    return encoded | {"charts/tokens.png": chart.png}


def _score_and_tokens(arms: Sequence[AgentArm]) -> Drawing:
    """Return every arm's score against the tokens that a sample took."""
    points = []
    for arm in arms:
        score, tokens = (arm_mean(arm.values(name)) for name in (arm.score, "tokens"))
        if score and tokens:
            limits = score.here or score.elsewhere
            points.append(Point(arm.name, tokens.mean, score.mean, limits, "", False))
    look = looks([arm.name for arm in arms], frozenset())
    return Drawing(
        "Score against tokens",
        "Means over the samples with a score, with 95 % intervals of the score.",
        HALF,
        lambda width: scattered(
            points,
            look,
            width,
            "tokens per sample (logarithmic)",
            up=f"score {arms[0].score}",
            most=1,
        ),
    )
