"""The pages under Firmware, in the order of their tabs."""

from django.urls import path, re_path
from django.utils.translation import gettext_lazy as _

from dashboard.views.firmware import images, inventory, keys, sets, updates
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
    path("images/<int:pk>/monthly/", images.image_monthly, name="firmware-image-monthly"),
    path("updates/", updates.updates, name="firmware-updates"),
    path("updates/new/<int:image>/", updates.update_new, name="firmware-update-new"),
    path("updates/<int:pk>/", updates.update_detail, name="firmware-update"),
    re_path(
        r"^updates/(?P<pk>\d{1,9})/(?P<action>approve|cancel)/$",
        updates.update_act,
        name="firmware-update-act",
    ),
    re_path(
        r"^updates/nodes/(?P<pk>\d{1,9})/(?P<action>release|reset)/$",
        updates.node_update_act,
        name="firmware-node-act",
    ),
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
