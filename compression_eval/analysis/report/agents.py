"""The report of an agent's runs: one page, its Markdown, its figures and a chart."""

import re
from collections.abc import Sequence
from importlib.resources import files

from compression_eval.analysis.agent_runs import AgentArm, arms_json, arms_page
from compression_eval.analysis.report.drawing import Chart, drawing, finished, looks, new_figure
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
    chart = _score_and_tokens(arms)
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: clean(value, _MAX_TEXT) if type(value) is str else value,
    )
    # Markup is only what is ours: the style, and a chart in which texts are drawn as paths.
    svg = Markup(re.sub(r"(?s)^.*?(?=<svg)", "", chart.svg))  # noqa: S704
    sections = arms_page(arms)
    html = environment.from_string(template).render(
        sections=sections,
        task=arms[0].logs[0].header.eval.task,
        chart=chart,
        svg=svg,
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


def _score_and_tokens(arms: Sequence[AgentArm]) -> Chart:
    """Draw every arm's score against the tokens that a sample took."""
    look = looks([arm.name for arm in arms], frozenset())
    with drawing():
        figure = new_figure(6.7, 3.6 + 0.2 * len(arms))
        axes = figure.subplots()
        for arm in arms:
            score, tokens = (arm_mean(arm.values(name)) for name in (arm.score, "tokens"))
            if not score or not tokens:
                continue
            own = look[arm.name]
            low, high = score.here or score.elsewhere or (score.mean, score.mean)
            axes.errorbar(
                tokens.mean,
                score.mean,
                yerr=[[score.mean - low], [high - score.mean]],
                marker=own.marker,
                color=own.colour,
                markersize=7,
                capsize=3,
                linestyle="none",
                label=own.label,
            )
        axes.set_xlabel("tokens per sample")
        axes.set_ylabel(f"score {arms[0].score}")
        axes.set_xlim(left=0)
        figure.legend(loc="outside lower center", fontsize=9)
        return finished(
            figure,
            "tokens",
            "Score against tokens",
            "Means over the samples with a score, with 95 % intervals of the score.",
        )
