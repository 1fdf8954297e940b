"""What models cost, where it is known.

Inspect has a place for prices (`ModelInfo.cost`) and ships none, so they come from a file, or from
whoever registered them with `set_model_cost`. What is not known is said to be unknown.
"""

from collections.abc import Mapping
from pathlib import Path

from inspect_ai.model import ModelCost, ModelInfo, get_model_info, set_model_info
from pydantic import TypeAdapter, ValidationError

from compression_eval.fixtures.errors import DataError, describe_validation_error
from compression_eval.sweeping.settings import read_yaml

_FILE: TypeAdapter[dict[str, ModelCost]] = TypeAdapter(dict[str, ModelCost])


def read_prices(file: Path | None) -> dict[str, ModelCost]:
    """Return the prices of a file by model; empty without a file."""
    if file is None:
        return {}
    try:
        found = _FILE.validate_python(read_yaml(file))
    except ValidationError as error:
        raise DataError(describe_validation_error(file, error)) from error
    for name, cost in found.items():
        if any(not 0 <= price < 1e6 for price in cost.model_dump().values()):
            raise DataError(f"{file}: {name}: a price is below 0 or not a price")
    return found


def price_of(model: str, prices: Mapping[str, ModelCost]) -> ModelCost | None:
    """Return a model's prices in dollars per million tokens; None if they are not known."""
    if model in prices:
        return prices[model]
    if model.startswith("embedded/"):
        return ModelCost(input=0, output=0, input_cache_write=0, input_cache_read=0)
    info = _known(model)
    return info.cost if info else None


def register_prices(prices: Mapping[str, ModelCost]) -> None:
    """Tell Inspect the prices, so that logs hold what each call cost.

    Its own ``model_cost_config`` would refuse models that it has never heard of.
    """
    for model, cost in prices.items():
        info = _known(model) or ModelInfo()
        set_model_info(model, info.model_copy(update={"cost": cost}))


def _known(model: str) -> ModelInfo | None:
    try:
        return get_model_info(model)
    except Exception:  # a provider's package may be missing, which is no matter here
        return None
