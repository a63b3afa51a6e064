"""Paths of the console."""

from django.urls import path

from platform_site.console.pages import existing
from platform_site.console.views import page

app_name = "console"
urlpatterns = [
    *(
        path(
            f"console/{each.address}",
            page,
            {"name": each.name, "template": each.template},
            name=each.name,
        )
        for each in existing()
    ),
]
