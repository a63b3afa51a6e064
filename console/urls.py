"""Paths of the console."""

from django.urls import path

from console.pages import existing
from console.views import page

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
