"""What happened: to read and to search."""

from django.contrib import admin

from dashboard.admin.base import ReadOnlyAdmin, ReadOnlyInline
from dashboard.models import Event, Job, JobStep


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    list_display = ["at", "level", "text", "deployment", "node"]
    list_filter = ["level", "deployment", "node"]
    search_fields = ["message", "params"]
    date_hierarchy = "at"


class StepInline(ReadOnlyInline):
    model = JobStep
    readonly_fields = ["label", "status", "detail", "started_at", "deadline_at", "finished_at"]
    fields = [*readonly_fields]


@admin.register(Job)
class JobAdmin(ReadOnlyAdmin):
    list_display = ["deployment", "kind", "status", "automatic", "by", "created", "finished_at"]
    list_filter = ["kind", "status", "automatic", "deployment"]
    fields = ["deployment", "kind", "status", "automatic", "by", "reason", "created", "finished_at"]
    inlines = [StepInline]
