"""What a name that becomes part of an address may look like, said the same everywhere."""

from django.utils.translation import gettext_lazy as _

PLAIN_NAME = _("Only letters, digits, hyphens and underscores, without spaces.")
