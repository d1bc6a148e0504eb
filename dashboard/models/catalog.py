"""Models in the catalogue."""

import msgspec
from django.db import models
from django.utils.translation import gettext_lazy as _

from engine.model_config import ModelConfig


class Model(models.Model):
    """A checkpoint that passed import: its place, its shape, its limits."""

    name = models.SlugField(_("name"), max_length=80, unique=True)
    title = models.CharField(_("title"), max_length=200, blank=True)
    path = models.CharField(_("path"), max_length=1024)
    format = models.CharField(_("format"), max_length=20, default="gguf")
    quantization = models.CharField(_("quantization"), max_length=40, blank=True)
    revision = models.CharField(_("weights revision"), max_length=64)
    size_bytes = models.BigIntegerField(_("size"))
    parameters = models.BigIntegerField(_("parameters"))
    license = models.CharField(_("licence"), max_length=80, blank=True)
    config = models.JSONField(_("shape"))
    created = models.DateTimeField(_("imported"), auto_now_add=True)

    class Meta:
        ordering = ["name"]
        verbose_name = _("model")
        verbose_name_plural = _("models")

    def __str__(self) -> str:
        return self.name

    @property
    def shape(self) -> ModelConfig:
        return msgspec.convert(self.config, ModelConfig)
