"""Makes the embedded model known to Inspect under ``embedded/…`` without importing it."""

from inspect_ai.model import Model, ModelAPI, get_model, modelapi

EMBEDDED_MODEL = "embedded/lexical"


def model_under_test() -> Model:
    """Return the model that Inspect evaluates, or the embedded one if none was chosen.

    A task that is made in Python cannot know yet whether ``eval()`` will be given a model.
    """
    active = get_model()
    return get_model(EMBEDDED_MODEL) if str(active) == "none/none" else active


@modelapi(name="embedded")
def embedded() -> type[ModelAPI]:
    """Return the provider's class, imported when a model of it is first asked for."""
    from compression_eval.offline.provider import EmbeddedAPI

    return EmbeddedAPI
