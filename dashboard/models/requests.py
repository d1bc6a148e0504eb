"""Requests of the API: what each was about, what it took and how it ended. Never a word of it."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.choices import RequestOutcome
from dashboard.models.access import ApiKey
from dashboard.models.deployments import Deployment


class ApiRequest(models.Model):
    """One row for each HTTP request that came with a good key; pruned by age.

    A stream whose caller comes back for the rest is a row of its own, with the same request id and
    the endpoint `/v1/streams`. Tokens are what the head told; without usage in a stream it tells
    none, and they are absent.
    """

    request = models.CharField(_("request"), max_length=64)
    """As in the header X-Request-Id and in the logs."""
    deployment = models.ForeignKey(
        Deployment,
        models.SET_NULL,
        verbose_name=_("deployment"),
        null=True,
        related_name="requests",
        db_index=False,
    )
    route = models.CharField(_("route name"), max_length=80, blank=True)
    """What the caller asked for; it may name no deployment."""
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, verbose_name=_("user"), null=True
    )
    key = models.ForeignKey(ApiKey, models.SET_NULL, verbose_name=_("API key"), null=True)
    endpoint = models.CharField(_("endpoint"), max_length=40)
    streamed = models.BooleanField(_("streamed"), default=False)
    """Whether that was asked for."""
    begun = models.DateTimeField(_("begun"))
    first_token_seconds = models.FloatField(_("time to first token"), null=True)
    """Of streams alone: nobody sees the first token of an answer that comes whole."""
    seconds = models.FloatField(_("time in all"))
    status = models.PositiveSmallIntegerField(_("HTTP status"), null=True)
    """Of the response; empty where the caller went before there was one."""
    outcome = models.CharField(_("outcome"), max_length=10, choices=RequestOutcome.choices)
    error = models.CharField(_("error"), max_length=60, blank=True)
    """A code as in the API's errors."""
    prompt_tokens = models.PositiveBigIntegerField(_("prompt tokens"), null=True)
    completion_tokens = models.PositiveBigIntegerField(_("completion tokens"), null=True)
    charged_tokens = models.PositiveBigIntegerField(_("charged tokens"), null=True)
    """What budgets count; an upper bound where the head told none. Empty where nothing counts."""
    charged_micros = models.PositiveBigIntegerField(_("charged money"), null=True)
    """In millionths of the currency."""
    launch = models.CharField(_("launch"), max_length=32, blank=True)
    """Whose head answered, the last where there were several."""

    class Meta:
        ordering = ["-begun", "-pk"]
        verbose_name = _("API request")
        verbose_name_plural = _("API requests")
        indexes = [
            models.Index(fields=["begun"], name="requests_by_time"),
            models.Index(fields=["deployment", "begun"], name="requests_by_deployment"),
            models.Index(fields=["user", "begun"], name="requests_by_user"),
        ]
        constraints = [
            # What a batch wrote before its connection broke is not written twice.
            models.UniqueConstraint(fields=["request", "begun"], name="one_row_per_request"),
        ]

    def __str__(self) -> str:
        return self.request
