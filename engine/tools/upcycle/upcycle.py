"""Either format, checked before and after."""

from pathlib import Path

from engine.checkpoint import Checkpoint, open_checkpoint
from engine.errors import CheckpointError, EngineError, system_words
from engine.errors import gettext_noop as _
from engine.tools.upcycle.files import check_target, unfinished
from engine.tools.upcycle.folder import check_folder, write_folder
from engine.tools.upcycle.gguf_file import check_gguf, write_gguf
from engine.tools.upcycle.recipe import Recipe


def upcycle(source: Path, target: Path, experts: int, per_token: int = 2, *, seed: int = 0) -> None:
    """Make an `experts`-expert mixture of the dense model at `source`, in its own format.

    `target` appears only when it is whole and has been verified. Raises ConfigError for what was
    asked, CheckpointError for a model that cannot become a mixture, each with one sentence.
    """
    recipe = Recipe(experts=experts, per_token=per_token, seed=seed)
    check_target(target)
    if source.is_dir():
        check_folder(source)
    checkpoint = open_checkpoint(source)
    _check(checkpoint)
    try:
        with unfinished(target) as hidden:
            if source.is_dir():
                write_folder(source, hidden, recipe)
            else:
                check_gguf(checkpoint)
                write_gguf(checkpoint, hidden, recipe)
            open_checkpoint(hidden)
    except OSError as error:
        raise EngineError(
            _("%(path)s cannot be written: %(reason)s."),
            path=str(target),
            reason=system_words(error),
        ) from error


def _check(checkpoint: Checkpoint) -> None:
    config = checkpoint.config
    if config.experts is not None:
        raise CheckpointError(
            _("%(file)s is a mixture of experts already."), file=checkpoint.path.name
        )
    if config.mlp_bias:
        raise CheckpointError(
            _("%(file)s: its MLPs have biases, which experts cannot have."),
            file=checkpoint.path.name,
        )
