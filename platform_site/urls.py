"""All paths."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path

import accounts.urls
import audit.urls
import oauth.urls
import organizations.urls
import outbox.urls
import sqlgateway.urls
from common import problems
from console.api_reference import views as api_reference
from console.public_pages import inbox, landing, not_found
from operations import health

urlpatterns = [
    # Tried in this order, so the most frequent paths come first. Without include(), whose extra
    # resolver takes as long as a query.
    *sqlgateway.urls.urlpatterns,
    *accounts.urls.urlpatterns,
    *organizations.urls.urlpatterns,
    *outbox.urls.urlpatterns,
    *audit.urls.urlpatterns,
    *oauth.urls.urlpatterns,
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.exposition),
    path("v1/schema", api_reference.SchemaView.as_view(), name="schema"),
    path("v1/docs", api_reference.page, name="docs"),
    path("", include("environments.urls")),
    path("", include("twofactor.urls")),
    path("", include("recovery.urls")),
    # Without the feature its paths return 404.
    *(
        [
            path("", include("billing.api.urls")),
            path("", include("edgecache.api.urls")),
        ]
        if settings.HAS_CACHE
        else []
    ),
    path("", include("console.urls")),
    path("", landing, name="landing"),
    path("inbox", inbox, name="inbox"),
    path("admin/", admin.site.urls),
]

handler400 = problems.bad_request
handler403 = problems.forbidden
handler404 = not_found
handler500 = problems.crashed
