"""How long records of API requests are kept."""

from django.conf import settings
from django.utils import timezone

from dashboard.models import ApiRequest


def forget_requests() -> None:
    ApiRequest.objects.filter(begun__lt=timezone.now() - settings.REQUESTS_KEEP).delete()
