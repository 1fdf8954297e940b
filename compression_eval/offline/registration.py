"""Makes the embedded model known to Inspect under ``embedded/…`` without importing it."""

from inspect_ai.model import ModelAPI, modelapi


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Return the provider's class, imported when a model of it is first asked for."""
    from compression_eval.offline.provider import EmbeddedAPI

    return EmbeddedAPI
