"""Paths of the console."""

from http import HTTPStatus

from django.urls import path

from platform_site.console.views import home, page

app_name = "console"
urlpatterns = [
    path("console", home),
    path("console/", page, {"template": "home.html"}, name="home"),
    path("console/sign-in", page, {"template": "sign_in.html"}, name="sign_in"),
    path("console/sign-up", page, {"template": "sign_up.html"}, name="sign_up"),
    path("console/security", page, {"template": "security.html"}, name="security"),
    path("console/policy", page, {"template": "policy.html"}, name="policy"),
    path("console/recovery", page, {"template": "recovery.html"}, name="recovery"),
    path(
        "console/recovery/cancel",
        page,
        {"template": "recovery_cancel.html"},
        name="recovery_cancel",
    ),
    path("console/<path:rest>", page, {"template": "missing.html", "status": HTTPStatus.NOT_FOUND}),
]
