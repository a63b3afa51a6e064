"""The cache in the admin: metrics over time. Pages with data of the brain are in staff_pages.py."""

from django.contrib import admin

from common.admin.filters import Days
from common.admin.pages import ReadOnlyAdmin
from edgecache.models import CacheSample


@admin.register(CacheSample)
class CacheSampleAdmin(ReadOnlyAdmin):
    list_display = (
        "moment",
        "is_hourly",
        "hit_ratio",
        "total_hits",
        "total_misses",
        "bytes_served",
        "active_nodes",
        "p95_latency_ms",
    )
    list_filter = ("is_hourly", ("moment", Days))
    ordering = ("-moment",)
