"""What somebody may not see is not offered to them either, and refused when sent all the same."""

from django import forms

from dashboard.access import seen
from monitoring.scopes import Hidden


def leave_out(form: forms.BaseForm, hidden: Hidden) -> None:
    """Of the fields `node`, `deployment` and `rule`, where the form has them."""
    for name, keys in (("node", hidden.nodes), ("deployment", hidden.deployments)):
        field = form.fields.get(name)
        if isinstance(field, forms.ModelChoiceField) and field.queryset is not None:
            field.queryset = field.queryset.exclude(pk__in=keys)
    rules = form.fields.get("rule")
    if isinstance(rules, forms.ModelChoiceField) and rules.queryset is not None:
        rules.queryset = seen(rules.queryset, hidden)
