"""A sweep as a configuration for Hawk, which runs Inspect's eval sets on Kubernetes.

Written after `hawk.core.types.evals.EvalSetConfig` of hawk 3.7.1. Hawk's runner has nothing of this
machine: it installs packages and calls `eval_set`, so whatever else a sweep needs is refused.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from compression_eval._version import __version__
from compression_eval.compressors.artifacts import SUFFIX
from compression_eval.compressors.user_supplied.adapting import source_digest
from compression_eval.conversations.scrubbing.secrets import by_own_rules
from compression_eval.errors import DataError, shorten
from compression_eval.fixtures.addresses import is_address
from compression_eval.fixtures.finding_files import find_files, shipped_fixtures
from compression_eval.inspect_models import EMBEDDED_MODEL
from compression_eval.sweeping.arms import Arm
from compression_eval.sweeping.planning import SweepPlan
from compression_eval.sweeping.settings import SweepSettings

_HEAD = f"""\
# A sweep of compression_eval {__version__} for Hawk (hawk.metr.org): hawk eval-set FILE
# Hawk decides where the logs lie and how much runs at a time. Read them with
# compression-eval report and compare.
"""

_NAME = "compression_eval"
"""Of the package, and of its entry point for Inspect."""

_BUILT_IN = "inspect-ai"
"""What Hawk calls the package of models whose provider comes with Inspect."""

_SDK = {"google": "google-genai", "groq": "groq", "mistral": "mistralai"}
"""What providers need beside Inspect and what this package depends on."""

_HERE = ("file://", "local://", "memory://")

_WORDS = (
    "(?i:key|keys|token|secrets?|password|passwd|authorization|credentials?|headers|signature|sig)"
)
_LAST = (
    "(?i:passphrase|passcode|pwd|cookies?|bearer)"
    "|(?<![A-Za-z])(?i:o?auth|pat)|(?<=[a-z])(?:Auth|Pat|PAT)"
)
"""What is a key at the end of a name only; ``auth_type``, ``author`` and ``compat`` are none."""

_SECRET = re.compile(f"{_WORDS}(?![a-z])|(?:{_LAST})$")
"""In a name of what may be a key; ``max_tokens`` and ``tokenizer`` are none."""

_WHOLE = re.compile(rf"^(?!.*(?i:page|next|continuation)[-_]?(?i:token)$).*(?:{_WORDS}|{_LAST})$")
"""A whole name of what is a key; ``token_count`` and ``page_token`` are none."""

_LOGIN = re.compile(r"(?i)https?://[^/?#\s@]*@|://[^/?#\s@:]*:[^/?#\s@]*@")
"""In an address; ``git+ssh://git@HOST`` and ``abfs://CONTAINER@ACCOUNT`` give nothing away."""

_QUERIED = re.compile(r"[?&;#]([^?&;=#]+)=[^?&;#]")
"""In an address: a name in its query or fragment that has a value."""


def hawk_config(plan: SweepPlan, package: str | None, retry_attempts: int) -> str:
    """Return an eval set's configuration as YAML.

    Args:
        plan: What it is to run.
        package: Where this package is installed from, as pip takes it; its version if None.
        retry_attempts: How often a task is taken up again in which samples had errors.

    Raises:
        DataError: The sweep needs something that Hawk's runner would not have, or what cannot be
            said in its configuration.
    """
    settings = plan.settings
    for problem in _problems(plan, package):
        raise DataError(f"--export hawk: {problem}")
    strategies = {arm.spec.name.removesuffix(SUFFIX) for arm in plan.arms}
    extra = "[langchain]" if "langchain" in strategies else ""
    package = package or f"{_NAME}{extra}=={__version__}"
    config = {"config": settings.generate} if settings.generate else {}
    address = {"base_url": settings.model_base_url} if settings.model_base_url else {}
    args = {**config, **address, **settings.model_args}
    roles = {role: names[0] for role, names in settings.roles.items()}
    providers = {name.partition("/")[0] for name in (*settings.models, *roles.values())}
    content = {
        "name": "compression-sweep",
        "tasks": [{"package": package, "name": _NAME, "items": [*map(_task, plan.arms)]}],
        "models": [_model(name, package, args) for name in settings.models],
        "model_roles": {role: _model(name, package, {}) for role, name in roles.items()},
        "packages": sorted(_SDK[each] for each in providers & _SDK.keys()),
        "epochs": {"epochs": plan.epochs, "reducer": "mean"},
        "retry_attempts": retry_attempts,
        # Samples that Inspect recovers from its realtime buffer lack our record.
        "log_realtime": False,
        # What is not a field of Hawk's it hands to `eval_set`.
        **settings.generate,
    }
    # Through JSON, as Hawk's service takes it: plain values, and nothing by reference.
    given = {name: each for name, each in content.items() if each != {}}
    plain = json.loads(json.dumps(given, default=str))  # YAML knows dates, JSON does not
    return _HEAD + str(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True, width=100))


def _problems(plan: SweepPlan, package: str | None) -> Iterator[str]:
    settings = plan.settings
    for name in settings.fixtures:
        if not _is_anywhere(name):
            yield (
                f"fixtures: {shorten(name)}: lies on this machine, and Hawk's runner on another; "
                "name shipped ones, or put it with its bank at an address (s3://…, hf:ORG/NAME)"
            )
    if settings.probes is not None:
        yield f"probes: {settings.probes}: lies on this machine; put banks beside their fixtures"
    for arm in plan.arms:
        if source_digest(arm.spec) is not None:
            yield f"arms: {arm.label}: is your own code, which Hawk's runner does not have"
        if arm.spec.name.removesuffix(SUFFIX) == "hermes":
            yield f"arms: {arm.label}: needs Hermes beside it, which Hawk's runner does not have"
    for role, names in settings.roles.items():
        if len(names) > 1:
            yield f"roles: {role}: Hawk binds one model to a role, not {len(names)}"
    written = settings.model_dump(include={"fixtures", "generate", "model_args", "model_base_url"})
    places = [*_secrets({**written, "--package": package})]
    for arm in plan.arms:
        # By whole names: arguments of a compressor may be called token_counter or key_facts.
        places += _secrets(_task(arm)["args"], f"arms: {arm.label}", _WHOLE)
    yield from (f"{place}: Hawk takes no keys in a file; give it --secret" for place in places)
    if settings.max_failed != SweepSettings.model_fields["max_failed"].default:
        yield "max_failed: nobody judges failures there; the report says how many there are"


def _secrets(value: Any, place: str = "", names: re.Pattern[str] = _SECRET) -> Iterator[str]:
    """Yield where a key may be: under such a name, in an address, or by how it looks."""
    if isinstance(value, dict):
        for name, each in value.items():
            inner = f"{place}: {name}".removeprefix(": ")
            yield from [inner] if names.search(str(name)) else _secrets(each, inner, names)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets(each, place, names)
    elif isinstance(value, str) and _LOGIN.search(value):
        yield f"{place}: a user or password before the host"
    elif isinstance(value, str) and any(
        _WHOLE.match(name)
        for word in value.split()
        if "://" in word
        for name in _QUERIED.findall(word)
    ):
        yield f"{place}: a key in the query of an address"
    elif isinstance(value, str) and any(by_own_rules(value)):
        yield f"{place}: what looks like a key"


def _is_anywhere(fixture: str) -> bool:
    """Return whether every machine finds what was named."""
    if is_address(fixture):
        *_, last = parts = fixture.lower().split("::")
        return is_address(last) and not any(part.startswith(_HERE) for part in parts)
    return "/" not in fixture and {*find_files(fixture)} <= {*shipped_fixtures().values()}


def _task(arm: Arm) -> dict[str, Any]:
    args = dict(arm.arguments)
    if args.pop("prompt", None) is not None:  # a file; its text is an argument, too
        given = args.get("compressor_args", {})
        args["compressor_args"] = {**given, "prompt": getattr(arm.spec.arguments, "prompt", None)}
    return {"name": "compression", "args": args}


def _model(name: str, package: str, args: dict[str, Any]) -> dict[str, Any]:
    ours = name == EMBEDDED_MODEL
    provider, _, rest = name.partition("/")
    item = {"name": rest if ours else name, **({"args": args} if args else {})}
    where = {"package": package, "name": provider} if ours else {"package": _BUILT_IN}
    return {**where, "items": [item]}
