"""Admin pages of libraries: removes Django's groups, which are not used, and shows the tasks."""

from django.contrib import admin
from django.contrib.auth.models import Group
from procrastinate.contrib.django.models import ProcrastinateEvent, ProcrastinateJob
from unfold.admin import TabularInline

from common.admin.pages import ReadOnlyAdmin

admin.site.unregister(Group)
admin.site.unregister(ProcrastinateJob)


class EventInline(TabularInline):  # type: ignore[misc]  # unfold ships no types
    """The events of a task."""

    model = ProcrastinateEvent
    can_delete = False
    extra = 0
    fields = readonly_fields = ("type", "at")
    ordering = ("id",)


@admin.register(ProcrastinateJob)
class TaskAdmin(ReadOnlyAdmin):
    """The platform's background tasks."""

    list_display = ("id", "task_name", "queue_name", "status", "attempts", "scheduled_at")
    list_filter = ("status",)
    search_fields = ("=id", "=task_name", "=queueing_lock")
    search_help_text = "Id, name of the task, or its lock"
    ordering = ("-id",)
    inlines = (EventInline,)
