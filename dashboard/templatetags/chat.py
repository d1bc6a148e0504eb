"""What the playground draws beyond other pages."""

from django import template
from django.utils.safestring import SafeString

from dashboard.rendering import render_markdown

register = template.Library()


@register.filter
def markdown(text: str) -> SafeString:
    return render_markdown(text)
