"""What happened: to read and to search."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from dashboard.admin.base import ReadOnlyAdmin, ReadOnlyInline
from dashboard.models import Event, Job, JobStep


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ["at", "level", "sentence", "deployment", "node"]
    list_filter = ["level", "deployment", "node"]
    search_fields = ["message", "params"]
    date_hierarchy = "at"
    exclude = ["message", "params"]

    @admin.display(description=_("event"))
    def sentence(self, event: Event) -> str:
        return event.text


class StepInline(ReadOnlyInline):
    model = JobStep
    readonly_fields = ["step", "status", "detail", "started_at", "deadline_at", "finished_at"]
    fields = [*readonly_fields]

    @admin.display(description=_("step"))
    def step(self, row: JobStep) -> str:
        return row.label


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ["deployment", "kind", "status", "automatic", "by", "created", "finished_at"]
    list_filter = ["kind", "status", "automatic", "deployment"]
    fields = ["deployment", "kind", "status", "automatic", "by", "reason", "created", "finished_at"]
    inlines = [StepInline]
