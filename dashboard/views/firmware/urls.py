"""The pages under Firmware, in the order of their tabs."""

from django.urls import path
from django.utils.translation import gettext_lazy as _

from dashboard.views.firmware.fetch import firmware_fetch

urlpatterns = [
    path("fetch/<str:token>/<str:name>", firmware_fetch, name="firmware-fetch"),
]

TABS = (
    ("firmware", _("Inventory")),
    ("firmware-updates", _("Updates")),
    ("firmware-images", _("Images")),
    ("firmware-sets", _("Tested sets")),
    ("firmware-keys", _("Vendor keys")),
)
