"""The second yardstick: a view of djangorestframework with simplejwt and one query.

``/whoami`` reads one row of the control database for the bearer of an access token; ``/token``
makes one.
"""

import os
from datetime import timedelta
from typing import Any

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

from platform_site.conf import control_database

settings.configure(
    SECRET_KEY="x" * 50,
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "rest_framework"],
    DATABASES={"default": control_database(os.environ["DATABASE_URL"], 0)},
    LOGGING_CONFIG=None,
    USE_TZ=True,
    REST_FRAMEWORK={"DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"]},
    SIMPLE_JWT={"ACCESS_TOKEN_LIFETIME": timedelta(hours=1)},
)
django.setup()

from rest_framework.permissions import IsAuthenticated  # noqa: E402 - after django.setup()
from rest_framework.request import Request  # noqa: E402 - after django.setup()
from rest_framework.response import Response  # noqa: E402 - after django.setup()
from rest_framework.views import APIView  # noqa: E402 - after django.setup()
from rest_framework_simplejwt.authentication import (  # noqa: E402 - after django.setup()
    JWTStatelessUserAuthentication,
)
from rest_framework_simplejwt.tokens import AccessToken  # noqa: E402 - after django.setup()


class Whoami(APIView):
    """Read one session's row by its key."""

    authentication_classes = (JWTStatelessUserAuthentication,)
    permission_classes = (IsAuthenticated,)

    def get(self, request: Request) -> Response:
        """Return the row."""
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT generation, aal, user_id FROM accounts_session WHERE id = %s",
                [os.environ["BENCH_SESSION"]],
            )
            found: Any = cursor.fetchone()
        return Response({"generation": found[0], "aal": found[1], "user_id": str(found[2])})


def token(request: HttpRequest) -> HttpResponse:
    """Return an access token."""
    made = AccessToken()
    made["user_id"] = 1
    return HttpResponse(str(made))


urlpatterns = [path("whoami", Whoami.as_view()), path("token", token)]
application = get_wsgi_application()
