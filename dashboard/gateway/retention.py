"""How long records of API requests are kept."""

from django.utils import timezone

from dashboard.models import ApiRequest
from dashboard.wishes import days


def forget_requests() -> None:
    ApiRequest.objects.filter(begun__lt=timezone.now() - days("keep_requests_days")).delete()
