"""The second baseline: a view of djangorestframework with simplejwt, as in their documentation.

``/whoami`` returns the user of an access token, which simplejwt reads with one query. ``/token``
creates a user and a token, and is called once.
"""

import os
from datetime import timedelta

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.urls import path

from common.conf import control_database

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

from django.contrib.auth.models import User  # noqa: E402 - after django.setup()
from rest_framework.permissions import IsAuthenticated  # noqa: E402 - after django.setup()
from rest_framework.request import Request  # noqa: E402 - after django.setup()
from rest_framework.response import Response  # noqa: E402 - after django.setup()
from rest_framework.views import APIView  # noqa: E402 - after django.setup()
from rest_framework_simplejwt.authentication import (  # noqa: E402 - after django.setup()
    JWTAuthentication,
)
from rest_framework_simplejwt.tokens import AccessToken  # noqa: E402 - after django.setup()


class Whoami(APIView):
    """The user of the token."""

    authentication_classes = (JWTAuthentication,)
    permission_classes = (IsAuthenticated,)

    def get(self, request: Request) -> Response:
        """Return the user."""
        user = request.user
        return Response({"id": user.pk, "name": user.get_username()})


def token(request: HttpRequest) -> HttpResponse:
    """Return a new user's access token; create Django's table, which the platform does not have."""
    with connection.schema_editor() as editor:
        editor.create_model(User)
    return HttpResponse(str(AccessToken.for_user(User.objects.create(username="bench"))))


urlpatterns = [path("whoami", Whoami.as_view()), path("token", token)]
application = get_wsgi_application()
