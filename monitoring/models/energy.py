"""What energy and boxes cost, as an operator entered it. Money is Decimal."""

from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.utils.translation import gettext_lazy as _

from monitoring.accounts import costs
from monitoring.accounts.tariffs import Rate, Tariff, Vat
from monitoring.accounts.weekly import EVERY_DAY, Weekly

NOT_NEGATIVE = [MinValueValidator(Decimal(0))]


def every_day() -> list[int]:
    return sorted(EVERY_DAY)


class PriceList(models.Model):
    """One row: currency, VAT, time zone, and the service that running is compared with."""

    currency = models.CharField(_("currency"), max_length=3, default="EUR")
    zone = models.CharField(_("time zone"), max_length=64, default="UTC")
    """Whose clock tariffs and days go by."""
    vat_percent = models.DecimalField(
        _("VAT"),
        max_digits=5,
        decimal_places=2,
        default=Decimal(0),
        validators=[*NOT_NEGATIVE, MaxValueValidator(Decimal(100))],
    )
    vat_entered = models.BooleanField(_("prices are entered with VAT"), default=True)
    vat_shown = models.BooleanField(_("sums are shown with VAT"), default=True)
    cloud_name = models.CharField(_("compared with"), max_length=80, blank=True)
    cloud_prompt = models.DecimalField(
        _("per million tokens read"),
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=NOT_NEGATIVE,
    )
    cloud_generated = models.DecimalField(
        _("per million tokens written"),
        max_digits=12,
        decimal_places=4,
        null=True,
        blank=True,
        validators=NOT_NEGATIVE,
    )

    class Meta:
        constraints = [
            models.CheckConstraint(condition=models.Q(pk=1), name="one_price_list"),
        ]

    def __str__(self) -> str:
        return self.currency

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.pk = 1
        super().save(*args, **kwargs)

    @classmethod
    def current(cls) -> "PriceList":
        """The one there is, or an unsaved one with nothing entered."""
        return cls.objects.first() or cls(pk=1)

    @property
    def vat(self) -> Vat:
        return Vat(self.vat_percent, self.vat_entered, self.vat_shown)

    @property
    def tariff(self) -> Tariff:
        """As entered; without lines when none was."""
        rates = tuple(row.rate for row in TariffRate.objects.all())
        return Tariff(rates, ZoneInfo(self.zone), self.vat)

    @property
    def cloud(self) -> costs.Cloud | None:
        """None until both prices were entered."""
        if self.cloud_prompt is None or self.cloud_generated is None:
            return None
        factor = self.vat.factor
        return costs.Cloud(
            self.cloud_prompt * factor, self.cloud_generated * factor, self.cloud_name
        )


class TariffRate(models.Model):
    """What a kilowatt-hour costs in some hours of the week, from a day on."""

    name = models.CharField(_("name"), max_length=60, blank=True)
    since = models.DateField(_("from"))
    days = ArrayField(models.PositiveSmallIntegerField(), verbose_name=_("days"), default=every_day)
    begins = models.TimeField(_("begins"))
    ends = models.TimeField(_("ends"))
    price = models.DecimalField(
        _("price per kWh"), max_digits=10, decimal_places=5, validators=NOT_NEGATIVE
    )

    class Meta:
        ordering = ["-since", "begins", "pk"]

    def __str__(self) -> str:
        return self.name or f"{self.begins:%H:%M}"

    @property
    def rate(self) -> Rate:
        hours = Weekly(frozenset(self.days), self.begins, self.ends)
        return Rate(self.price, hours, self.since, self.name)


class Outlay(models.Model):
    """A purchase, or an upkeep that comes again."""

    class Every(models.TextChoices):
        ONCE = "once", _("once (purchase)")
        MONTH = "month", _("every month")
        YEAR = "year", _("every year")

    name = models.CharField(_("name"), max_length=80)
    amount = models.DecimalField(
        _("amount"), max_digits=14, decimal_places=2, validators=NOT_NEGATIVE
    )
    every = models.CharField(
        _("how often"), max_length=10, choices=Every.choices, default=Every.ONCE
    )
    since = models.DateField(_("from"))

    class Meta:
        ordering = ["every", "since", "pk"]

    def __str__(self) -> str:
        return self.name

    def outlay(self, vat: Vat) -> costs.Outlay:
        every: Any = self.every
        return costs.Outlay(self.name, self.amount * vat.factor, self.since, every)
