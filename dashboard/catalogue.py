"""Taking model files into the catalogue: checked first, then one row at the end."""

import logging
import os
from pathlib import Path

import msgspec
from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext_noop as _

from dashboard import outbox
from dashboard.errors import ImportRefused
from dashboard.models import Model
from dashboard.sentences import Sentence, sentence_of
from engine.bundled import bundled_model
from engine.checkpoint import Checkpoint, open_checkpoint
from engine.checkpoint import revision as revision_of
from engine.errors import CheckpointError

log = logging.getLogger(__name__)


def bundled_model_path() -> Path:
    """The model that comes with Tandem. Raises ImportRefused when it is not installed."""
    try:
        return bundled_model()
    except CheckpointError as error:
        raise ImportRefused(sentence_of(error)) from error


def import_model(path: str | Path, name: str | None = None, title: str = "") -> Model:
    """Check a GGUF file or a Hugging Face folder and add it, or answer the row that it has already.

    Raises ImportRefused with what is wrong and where; nothing is left behind then.
    """
    # pathlib's own ways raise RuntimeError for an unknown user and for a link to itself.
    path = Path(os.path.realpath(os.path.expanduser(path)))
    try:
        checkpoint = open_checkpoint(path)
        checkpoint.tokenizer  # noqa: B018 - reading it is the check
        revision = revision_of(path)
    except CheckpointError as error:
        log.info("Import of %s refused: %s", path, error)
        raise ImportRefused(sentence_of(error)) from error
    known = Model.objects.filter(revision=revision).first()
    if known is not None and known.path == str(path) and name in (None, known.name):
        return known
    if known is not None:
        raise ImportRefused(
            Sentence(_("This file is in the catalogue already, as %(name)s."), name=known.name)
        )
    return _add(checkpoint, revision, name or _name_for(checkpoint), title)


def _name_for(checkpoint: Checkpoint) -> str:
    return slugify(checkpoint.name)[:80] or slugify(checkpoint.path.stem)[:80] or "model"


@transaction.atomic
def _add(checkpoint: Checkpoint, revision: str, name: str, title: str) -> Model:
    model = Model(
        name=name,
        title=title or checkpoint.name,
        path=str(checkpoint.path),
        format=checkpoint.format,
        quantization=checkpoint.quantization,
        revision=revision,
        size_bytes=checkpoint.size_bytes,
        parameters=checkpoint.parameters,
        license=checkpoint.license,
        config=msgspec.to_builtins(checkpoint.config),
    )
    try:
        with transaction.atomic():
            model.save()
    except IntegrityError as error:
        same = Model.objects.filter(name=name, revision=revision, path=model.path).first()
        if same is not None:  # two imported it at once
            return same
        raise ImportRefused(
            Sentence(_("There is a model named %(name)s already; give another name."), name=name)
        ) from error
    outbox.announce("model", model.pk)
    return model
