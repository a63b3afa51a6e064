"""The baseline: plain Django with two views that run one query each.

``/row`` reads one row of the control database by its key. ``/sql`` runs the statement in a JSON
body on a persistent connection to the tenants' cluster, and returns its rows as JSON. ``/rows``
does the same with fetchall and orjson.
"""

import json
import os
import threading
from typing import Any

import django
import orjson
import psycopg
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from common.conf import control_database

settings.configure(
    SECRET_KEY="x" * 50,
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["localhost", "127.0.0.1"],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    INSTALLED_APPS=[],
    DATABASES={"default": control_database(os.environ["DATABASE_URL"], 0)},
    LOGGING_CONFIG=None,
    USE_TZ=True,
)
django.setup()
local = threading.local()


def row(request: HttpRequest) -> HttpResponse:
    """Read one session's row by its key."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generation, aal, user_id FROM accounts_session WHERE id = %s",
            [os.environ["BENCH_SESSION"]],
        )
        found = cursor.fetchone()
    return JsonResponse({"generation": found[0], "aal": found[1], "user_id": str(found[2])})


def sql(request: HttpRequest) -> HttpResponse:
    """Run a statement."""
    cursor = _connection().execute(json.loads(request.body)["query"])
    names = [column.name for column in cursor.description or ()]
    return JsonResponse({"rows": [dict(zip(names, line, strict=True)) for line in cursor]})


def rows(request: HttpRequest) -> HttpResponse:
    """Run a statement that has many rows."""
    cursor = _connection().execute(json.loads(request.body)["query"])
    names = [column.name for column in cursor.description or ()]
    found = [dict(zip(names, line, strict=True)) for line in cursor.fetchall()]
    return HttpResponse(orjson.dumps({"rows": found}), content_type="application/json")


def _connection() -> psycopg.Connection[Any]:
    held: psycopg.Connection[Any] | None = getattr(local, "connection", None)
    if held is None:
        held = local.connection = psycopg.connect(os.environ["ZSQL_CLUSTER_URL"], autocommit=True)
    return held


urlpatterns = [path("row", row), path("sql", sql), path("rows", rows)]
application = get_wsgi_application()
