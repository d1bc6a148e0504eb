"""Why a message could not be delivered."""

from django.utils.translation import gettext


class UndeliverableError(Exception):
    """`template` is an English sentence, translated when it is shown.

    `final`: trying again would change nothing until somebody changes the channel.
    """

    def __init__(self, template: str, *, final: bool = False, **parts: str | int) -> None:
        super().__init__(template)
        self.template = template
        self.parts = parts
        self.final = final

    def __str__(self) -> str:
        return gettext(self.template) % self.parts
