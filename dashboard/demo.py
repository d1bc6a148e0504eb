"""The mixture-of-experts demo: the bundled model's own words through a real router."""

from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_noop as _

from dashboard import catalogue
from dashboard.errors import ImportRefused
from dashboard.models import Model
from dashboard.sentences import Sentence, sentence_of
from engine.errors import EngineError

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
        _make(path)
    return catalogue.import_model(path, NAME, "SmolLM2 4 × 135M Experts")


def _make(path: Path) -> None:
    # Here alone: it needs numpy, which costs every start of the panel a tenth of its time.
    from engine.tools.upcycle import upcycle

    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        upcycle(catalogue.bundled_model_path(), path, EXPERTS, EXPERTS_PER_TOKEN)
    except OSError as error:
        template = _("%(path)s cannot be written: %(reason)s.")
        reason = error.strerror or str(error)
        raise ImportRefused(Sentence(template, path=str(path), reason=reason)) from error
    except EngineError as error:
        if not path.exists():  # else another click was faster
            raise ImportRefused(sentence_of(error)) from error
