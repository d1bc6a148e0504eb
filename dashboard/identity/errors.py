"""Why somebody cannot sign in through the provider, or the provider cannot be used."""

from allauth.socialaccount.providers.oauth2.client import OAuth2Error

from dashboard.errors import TandemError


class ProviderError(TandemError, OAuth2Error):  # type: ignore[misc]
    """The provider does not answer as OpenID Connect asks; the sentence says what is wrong."""


class Refused(TandemError):
    """The provider vouches for somebody whom the panel does not let in."""
