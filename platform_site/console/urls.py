"""Paths of the console."""

from django.urls import path

from platform_site.console.pages import existing
from platform_site.console.views import home, missing, page

app_name = "console"
urlpatterns = [
    path("console", home),
    *(
        path(
            f"console/{each.address}",
            page,
            {"name": each.name, "template": each.template},
            name=each.name,
        )
        for each in existing()
    ),
    path("console/<path:rest>", missing),
]
