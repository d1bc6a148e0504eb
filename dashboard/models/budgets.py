"""What users, keys and teams may use, and what the tokens of a route cost."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from dashboard.models.access import ApiKey
from dashboard.models.accounts import Team


class Budget(models.Model):
    """Of one user, key or team. An empty limit is none."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="budget"
    )
    key = models.OneToOneField(ApiKey, models.CASCADE, null=True, related_name="budget")
    team = models.OneToOneField(Team, models.CASCADE, null=True, related_name="budget")
    requests_minute = models.PositiveBigIntegerField(_("requests a minute"), null=True)
    requests_day = models.PositiveBigIntegerField(_("requests a day"), null=True)
    tokens_minute = models.PositiveBigIntegerField(_("tokens a minute"), null=True)
    tokens_day = models.PositiveBigIntegerField(_("tokens a day"), null=True)
    money_month = models.DecimalField(
        _("money a month"), max_digits=12, decimal_places=2, null=True
    )

    class Meta:
        verbose_name = _("budget")
        verbose_name_plural = _("budgets")
        constraints = [
            models.CheckConstraint(
                name="budget_of_one",
                condition=(
                    models.Q(user__isnull=False, key=None, team=None)
                    | models.Q(user=None, key__isnull=False, team=None)
                    | models.Q(user=None, key=None, team__isnull=False)
                ),
            )
        ]

    def __str__(self) -> str:
        return str(self.user or self.key or self.team)


class RoutePrice(models.Model):
    """Of a million tokens."""

    route = models.CharField(_("route name"), max_length=80, unique=True)
    prompt = models.DecimalField(_("prompt"), max_digits=10, decimal_places=4, default=0)
    completion = models.DecimalField(_("completion"), max_digits=10, decimal_places=4, default=0)

    class Meta:
        ordering = ["route"]
        verbose_name = _("price of a route")
        verbose_name_plural = _("prices of routes")

    def __str__(self) -> str:
        return self.route
