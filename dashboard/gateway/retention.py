"""How long records of API requests are kept."""

from datetime import timedelta

from django.utils import timezone

from dashboard.models import ApiRequest, Budget
from dashboard.wishes import days


def forget_requests() -> None:
    """While there is a budget of money, those of its month stay."""
    kept = days("keep_requests_days")
    if Budget.objects.exclude(money_month=None).exists():
        kept = max(kept, timedelta(days=32))
    ApiRequest.objects.filter(begun__lt=timezone.now() - kept).delete()
