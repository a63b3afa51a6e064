"""Paths of the console."""

from http import HTTPStatus

from django.conf import settings
from django.urls import path

from platform_site.console.views import home, page

app_name = "console"
CACHE = [path("console/cache", page, {"template": "cache.html"}, name="cache")]
urlpatterns = [
    path("console", home),
    path("console/", page, {"template": "home.html"}, name="home"),
    path("console/sign-in", page, {"template": "sign_in.html"}, name="sign_in"),
    path("console/sign-up", page, {"template": "sign_up.html"}, name="sign_up"),
    path("console/security", page, {"template": "security.html"}, name="security"),
    path("console/account", page, {"template": "account.html"}, name="account"),
    path(
        "console/linked-accounts",
        page,
        {"template": "linked_accounts.html"},
        name="linked_accounts",
    ),
    path("console/members", page, {"template": "members.html"}, name="members"),
    path("console/invitation", page, {"template": "invitation.html"}, name="invitation"),
    path(
        "console/email-change/cancel",
        page,
        {"template": "email_change_cancel.html"},
        name="email_change_cancel",
    ),
    path("console/policy", page, {"template": "policy.html"}, name="policy"),
    path("console/audit", page, {"template": "audit.html"}, name="audit"),
    *(CACHE if settings.HAS_CACHE else []),
    path("console/recovery", page, {"template": "recovery.html"}, name="recovery"),
    path(
        "console/recovery/cancel",
        page,
        {"template": "recovery_cancel.html"},
        name="recovery_cancel",
    ),
    path("console/<path:rest>", page, {"template": "missing.html", "status": HTTPStatus.NOT_FOUND}),
]
