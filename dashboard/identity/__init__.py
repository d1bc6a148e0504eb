"""Who somebody is: passwords, an OpenID Connect provider, second factors. Built on allauth."""
