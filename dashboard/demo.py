"""The mixture-of-experts demo: the bundled model's own words through a real router."""

from pathlib import Path

from django.conf import settings

from dashboard import catalogue
from dashboard.errors import ImportRefused
from dashboard.models import Model
from dashboard.sentences import sentence_of
from engine.errors import EngineError
from engine.tools.upcycle import upcycle

NAME = "smollm2-moe-4x135m"
EXPERTS, EXPERTS_PER_TOKEN = 4, 2


def demo_path() -> Path:
    return Path(settings.STATE_DIR) / "models" / f"{NAME}.gguf"


def is_offered() -> bool:
    """Whether it can be made here and is not in the catalogue yet."""
    return not Model.objects.filter(name=NAME).exists()


def add_experts_demo() -> Model:
    """Make the file, unless it is there already, and import it. Raises ImportRefused."""
    path = demo_path()
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            upcycle(catalogue.bundled_model_path(), path, EXPERTS, EXPERTS_PER_TOKEN)
        except EngineError as error:
            raise ImportRefused(sentence_of(error)) from error
    return catalogue.import_model(path, NAME, "SmolLM2 4 × 135M Experts")
