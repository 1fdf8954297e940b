"""What defines an arm: every setting that two runs of the same arm share.

Tables, comparisons and reports all take the arms from here, so that none pools runs that another
separates.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from inspect_ai.model import GenerateConfig, ModelConfig

from compression_eval.analysis.logs import Log
from compression_eval.fixtures.digests import digest
from compression_eval.versioning import TEXTS, parts_of

ARGUMENT = "compressor_args."
"""Prefix of a strategy's arguments among the settings of an arm."""

FITTED = "fitted"
"""Key of a log's metadata: the ``argument`` that a sweep fitted, and the ``budgets`` for which."""

_MODEL, _COMPRESSOR_MODEL, _GRADED_BY = "model", "compressor model", "graded by"

_OPERATIONAL = {
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections"),
    *("adaptive_connections", "cache", "cache_prompt", "batch", "extra_headers"),
}
"""Settings of a model that do not affect its replies."""

_SECRET = re.compile(
    r"key|token|secret|passw|passphrase|pwd|credential|auth|bearer|cookie|header|signature", re.I
)
"""Names of arguments whose values are hidden, nested ones included."""

_SECRET_TEXT = re.compile(r"(?i)\b(?:bearer|basic)\s+\S+|\bsk-[\w-]+")
"""Secrets under any name, as in the headers of a command."""

_START_A_SERVER = ("vllm/", "sglang/")
"""Providers that serve the model themselves, each time at another port."""

MAX_ARGUMENT = 40
"""Maximum characters of an argument's text; only the beginning of a longer one is shown."""

_DIGITS = 6
"""Of a digest in a name."""


def arm_names(logs: Sequence[Log]) -> list[str]:
    """Return the name that tables give to each log's arm; logs of one arm have one name.

    It is the strategy's name, with what tells it from the other logs where that is not enough, in
    round brackets its arguments that differ and have a value (a prompt by its file), in square
    ones whatever else does: models with their settings, graders, or a digest of what was edited.
    """
    settings = [arm_settings(log) for log in logs]
    made_of = _told_apart([json.dumps(each) for each in settings], logs)
    names = _with_arguments(settings, logs)
    models = [log.header.eval.model for log in logs]
    for name, members in _groups(names).items():
        described = {
            at: {**_rest(settings[at], answered_by(logs[at])), **made_of[at]} for at in members
        }
        several = len({models[at] for at in members}) > 1
        for at in members:
            # Another model's settings add nothing to its name.
            alike = [described[each] for each in members if models[each] == models[at]]
            words = [models[at]] if several else []
            words += [_short(key, described[at][key]) for key in _differing(described[at], alike)]
            if words:
                names[at] = f"{name} [{', '.join(words)}]"
    wholes = zip(settings, made_of, strict=True)
    return _all_different(names, [_json(both) for both in wholes])


def strategy_names(logs: Sequence[Log]) -> list[str]:
    """Return the name of each log's strategy, with the arguments in which the logs differ."""
    return _with_arguments([arm_settings(log) for log in logs], logs)


def arm_settings(log: Log) -> dict[str, str]:
    """Return the settings of a log's arm by name, as text without secrets."""
    spec = log.header.eval
    metadata: dict[str, Any] = spec.metadata or {}
    compressor = (spec.model_roles or {}).get("compressor")
    settings = {"compressor": log.compressor}
    settings |= {f"{ARGUMENT}{name}": _text(value) for name, value in arguments_of(log).items()}
    settings["cycles"] = str(_cycles(log))
    settings[_MODEL] = spec.model
    settings |= {f"{_MODEL}.{name}": value for name, value in _own_settings(log).items()}
    settings[_COMPRESSOR_MODEL] = ", ".join(log.models("compressor"))
    if isinstance(compressor, ModelConfig):
        own = _model_settings(compressor)
        settings |= {f"{_COMPRESSOR_MODEL}.{name}": value for name, value in own.items()}
    settings[_GRADED_BY] = graders_of(log)
    settings |= log.grading.settings
    if limits := metadata.get("refetch"):
        settings["refetch"] = ", ".join(f"{value} {name}" for name, value in limits.items())
    if (spec.task_args or {}).get("state_facts") == "match":  # the default reads where it can
        settings["state_facts"] = "match"
    settings["min_removed"] = str(metadata.get("min_removed", ""))
    settings["tokens counted with"] = str(metadata.get("token_counter", ""))
    return settings


def answered_by(log: Log) -> str:
    """Return the model under test with its settings."""
    return _with_settings(log.header.eval.model, _own_settings(log))


def graders_of(log: Log) -> str:
    """Return the graders with their settings: those of the run, or who graded it again."""
    spec = log.header.eval
    role = (spec.model_roles or {}).get("grader")
    bound = role if isinstance(role, list) else [role] if role else []
    graded = [str(grader.get("model")) for grader in log.grading.graders]
    own = [_texts(decisive(grader.get("parameters") or {})) for grader in log.grading.graders]
    as_bound = [_texts(decisive(given(each.config))) for each in bound]
    again = graded != ([config.model for config in bound] or [spec.model])
    recorded = all("parameters" in grader for grader in log.grading.graders)
    if graded and (again or (bound and recorded and own != as_bound)):
        # A log that was graded again keeps the role of its run, so its samples decide.
        models = list(zip(graded, own, strict=True))
    elif bound:
        models = [(each.model, _model_settings(each)) for each in bound]
    else:
        models = [(spec.model, _own_settings(log))]
    return " + ".join(_with_settings(*each) for each in models)


def arguments_of(log: Log) -> dict[str, Any]:
    """Return the arguments of a log's strategy, secrets as their digests."""
    described = (log.header.eval.metadata or {}).get("compressor")
    arguments = described.get("arguments") if isinstance(described, dict) else None
    given = arguments if isinstance(arguments, dict) else {}
    return {name: _without_secrets(name, value) for name, value in given.items()}


def fitted_to(asked: Mapping[str, Any]) -> str:
    """Return the budgets that a strategy's argument was fitted to, for people."""
    return " and ".join(map(str, asked.get("budgets", ())))


def _named_by(log: Log) -> dict[str, Any]:
    """Return the arguments that name a log's arm; a sweep's budget for what was fitted to it."""
    asked = (log.header.eval.metadata or {}).get(FITTED)
    asked = asked if isinstance(asked, dict) else {}
    arguments = {**arguments_of(log), "cycles": _cycles(log)}
    if asked:
        arguments.pop(str(asked.get("argument")), None)
        arguments["budget"] = fitted_to(asked)
    return arguments


def settings_of(log: Log) -> str:
    """Return every argument of a log's strategy that has a value, for people."""
    return ", ".join(_shown(log, arguments_of(log)))


def prompt_file(log: Log) -> str | None:
    """Return the name of the file that a log's prompt came from, if it came from one."""
    prompt = (log.header.eval.task_args or {}).get("prompt")
    # Its folders are of another machine, perhaps of another system.
    return re.split(r"[/\\]", prompt)[-1] if isinstance(prompt, str) else None


def decisive(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that affect a model's replies, secrets as digests."""
    kept = {name: value for name, value in sorted(settings.items()) if name not in _OPERATIONAL}
    return {name: _without_secrets(name, value) for name, value in kept.items()}


def _own_settings(log: Log) -> dict[str, str]:
    spec = log.header.eval
    return _model_settings(
        ModelConfig(
            model=spec.model,
            config=spec.model_generate_config,
            args=spec.model_args,
            base_url=spec.model_base_url,
        )
    )


def _model_settings(model: ModelConfig) -> dict[str, str]:
    settings = _texts(decisive(given(model.config)) | decisive(model.args))
    if model.base_url and not model.model.startswith(_START_A_SERVER):
        settings["base_url"] = address(model.base_url)
    return settings


def given(config: GenerateConfig) -> dict[str, Any]:
    """Return the settings of a model that are set, as plain data."""
    return config.model_dump(mode="json", exclude_none=True)


def _with_settings(model: str, settings: Mapping[str, str]) -> str:
    return " ".join([model, *(f"{name}={value}" for name, value in settings.items())])


def address(url: str) -> str:
    """Return an address without user, password and query, which may contain a key."""
    parts = urlsplit(url)
    try:
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        port = ""
    plain = f"{parts.scheme}://{parts.hostname}{port}{parts.path}".rstrip("/")
    return plain if plain == url.rstrip("/") else f"{plain} {_hidden(url)}"


def _without_secrets(name: str, value: Any) -> Any:
    if _SECRET.search(name) and value and not isinstance(value, int | float):
        return _hidden(_text(value))
    if isinstance(value, Mapping):
        return {str(key): _without_secrets(str(key), each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(name, each) for each in value]
    if isinstance(value, str) and "://" in value and not any(map(str.isspace, value)):
        return address(value)
    if isinstance(value, str):
        return _SECRET_TEXT.sub(lambda match: _hidden(match[0]), value)
    return value


def _hidden(text: str) -> str:
    return f"#{digest(text)[:_DIGITS]}"


def _with_arguments(settings: Sequence[Mapping[str, str]], logs: Sequence[Log]) -> list[str]:
    """Return the strategies' names with the arguments in which they differ."""
    strategies = [log.compressor or log.name for log in logs]
    # A user's file is named without its folders.
    shown = [re.split(r"[/\\]", name)[-1] if "@" in name else name for name in strategies]
    names = _all_different(shown, strategies)
    described = list(map(_named_by, logs))
    for name, members in _groups(names).items():
        for at in members:
            differing = _differing(described[at], [described[each] for each in members])
            shown = _shown(logs[at], {key: described[at][key] for key in differing})
            if shown:
                names[at] = f"{name} ({', '.join(shown)})"
    # Two files of one name may contain different prompts.
    return _all_different(names, [str(each.get(f"{ARGUMENT}prompt")) for each in settings])


def _differing(one: Mapping[str, Any], alike: Sequence[Mapping[str, Any]]) -> list[str]:
    return [key for key in one if len({_json(each.get(key)) for each in alike}) > 1]


def _groups(names: Iterable[str]) -> dict[str, list[int]]:
    """Return the places of each name."""
    positions: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        positions[name].append(index)
    return positions


def _all_different(names: Sequence[str], wholes: Sequence[str]) -> list[str]:
    """Return names, with a digest where one name has several meanings."""
    pairs = list(zip(names, wholes, strict=True))
    meanings = Counter(name for name, _ in set(pairs))
    return [f"{name} {_hidden(whole)}" if meanings[name] > 1 else name for name, whole in pairs]


def _told_apart(kinds: Sequence[str], logs: Sequence[Log]) -> list[dict[str, str]]:
    """Return, per log, what decided its results and was edited between it and others of its kind.

    Logs on other conversations were made of other things and are of one arm all the same: only
    what two logs both have can differ. Versions decide where logs do not say what was edited.
    """
    differing: list[dict[str, str]] = [{} for _ in logs]
    of_log = list(map(made_of, logs))
    versions = [{f"version on {_about(log)}": str(log.header.eval.task_version)} for log in logs]
    if all(TEXTS in parts for parts in of_log):
        versions = [{} for _ in logs]  # nor does the version of Inspect make an arm
    for parts in (of_log, versions):
        pairs = zip(kinds, list(differing), strict=True)
        for members in _groups([f"{kind} {known}" for kind, known in pairs]).values():
            for at in members:
                for key, value in parts[at].items():
                    if len({parts[each][key] for each in members if key in parts[each]}) > 1:
                        differing[at][key] = value
    return differing


def made_of(log: Log) -> dict[str, str]:
    """Return what decided a log's results besides its settings: digests, by what they are of."""
    spec = log.header.eval
    version = str(spec.task_version)
    release = {"release": version.partition("-")[0]}
    return release | parts_of(version, spec.metadata or {}) | log.grading.rubrics


def _about(log: Log) -> str:
    dataset = log.header.eval.dataset
    return digest(_json([dataset.name, sorted(map(str, dataset.sample_ids or []))]))


def _rest(settings: Mapping[str, str], answerer: str) -> dict[str, str]:
    """Return the settings beyond the strategy and its arguments."""
    named = {"compressor", "cycles", _MODEL}
    if settings[_GRADED_BY] == answerer:
        named.add(_GRADED_BY)  # the model's settings cover it
    rest = {k: v for k, v in settings.items() if k not in named and not k.startswith(ARGUMENT)}
    if settings[_COMPRESSOR_MODEL] == settings[_MODEL]:
        rest = {k: v for k, v in rest.items() if not k.startswith(_COMPRESSOR_MODEL)}
    return rest


def _short(key: str, value: str) -> str:
    """Return a setting as part of a name."""
    if key == _COMPRESSOR_MODEL:
        return f"compressed by {value}"
    if key == _GRADED_BY:
        return f"{key} {value}"
    if key.startswith("version on "):
        return f"version {value}"
    value = _beginning(value)
    if key.startswith((f"{_MODEL}.", f"{_COMPRESSOR_MODEL}.")):
        return f"{key.removeprefix(f'{_MODEL}.').replace(' model.', ' ')}={value}"
    is_digest = re.fullmatch(r"[0-9a-f]{12,64}", value)
    return f"{key} #{value[:_DIGITS]}" if is_digest else f"{key} {value}"


def _shown(log: Log, arguments: Mapping[str, Any]) -> list[str]:
    """Return arguments for display: a prompt by its file's name or its beginning."""
    parts = []
    for key, value in arguments.items():
        if key == "prompt" and (file := prompt_file(log)):
            parts.append(f"{key} {file}")
        elif isinstance(value, str) and len(value) > MAX_ARGUMENT:
            parts.append(f"{key} “{_beginning(value)}”")
        elif value is not None:
            parts.append(f"{key}={_text(value)}")
    return parts


def _beginning(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_ARGUMENT else f"{line[:MAX_ARGUMENT]}…"


def _cycles(log: Log) -> int:
    """Return the number of compressions of each state, which is part of the arm."""
    values = [step.params.get("cycles") for step in log.header.plan.steps]
    return next((cycles for cycles in values if isinstance(cycles, int)), 1)


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _texts(settings: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in settings.items()}
