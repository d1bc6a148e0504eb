"""The pages under Firmware, in the order of their tabs."""

from django.urls import path
from django.utils.translation import gettext_lazy as _

from dashboard.views.firmware import images, inventory, keys, sets
from dashboard.views.firmware.fetch import firmware_fetch

urlpatterns = [
    path("", inventory.inventory, name="firmware"),
    path("nodes/<slug:name>/", inventory.firmware_node, name="firmware-node"),
    path("nodes/<slug:name>/read/", inventory.firmware_read, name="firmware-read"),
    path("nodes/<slug:name>/offers/<int:pk>/", inventory.firmware_offer, name="firmware-offer"),
    path("images/", images.images, name="firmware-images"),
    path("images/new/", images.image_new, name="firmware-image-new"),
    path("images/bundle/", images.bundle_new, name="firmware-bundle-new"),
    path("images/<int:pk>/", images.image_detail, name="firmware-image"),
    path("images/<int:pk>/remove/", images.image_remove, name="firmware-image-remove"),
    path("sets/", sets.sets, name="firmware-sets"),
    path("sets/<int:pk>/", sets.set_detail, name="firmware-set"),
    path("sets/<int:pk>/remove/", sets.set_remove, name="firmware-set-remove"),
    path("keys/", keys.keys, name="firmware-keys"),
    path("keys/<int:pk>/remove/", keys.key_remove, name="firmware-key-remove"),
    path("fetch/<str:token>/<str:name>", firmware_fetch, name="firmware-fetch"),
]

TABS = (
    ("firmware", _("Inventory")),
    ("firmware-updates", _("Updates")),
    ("firmware-images", _("Images")),
    ("firmware-sets", _("Tested sets")),
    ("firmware-keys", _("Vendor keys")),
)
