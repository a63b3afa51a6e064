"""All paths."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from platform_site import health
from platform_site.lib import problems

urlpatterns = [
    path("healthz", health.healthz),
    path("readyz", health.readyz),
    path("metrics", health.exposition),
    path("v1/schema", SpectacularAPIView.as_view(), name="schema"),
    path("v1/docs", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="docs"),
    path("", include("accounts.urls")),
    path("", include("environments.urls")),
    path("", include("twofactor.urls")),
    path("", include("recovery.urls")),
    path("", include("sqlgateway.urls")),
    path("", include("platform_site.console.urls")),
    path("admin/", admin.site.urls),
]

handler400 = problems.bad_request
handler403 = problems.forbidden
handler404 = problems.not_found
handler500 = problems.crashed
