"""``/v1/sql/import``."""

from typing import Any, Final

from django.conf import settings
from django.utils.http import parse_header_parameters
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from common.api.views import NEGOTIATOR, NO_STORE
from common.errors import InvalidRequest, PayloadTooLarge, UnsupportedMedia
from common.permissions import needs
from sqlgateway.api.negotiation import STATEMENT_ERRORS, LimitedViewSet, refuse_repetition
from sqlgateway.api.serializers import ImportQuerySerializer, ImportSerializer
from sqlgateway.clusters.organization_limits import Quota
from sqlgateway.errors import IdempotencyNotSupported, UploadInterrupted
from sqlgateway.run.requests import Caller
from sqlgateway.transfer import imports
from sqlgateway.transfer.imports import ImportRequest
from sqlgateway.transfer.uploads import UploadedBody

CSV: Final = "text/csv"
# ASCII is a part of UTF-8.
CHARSETS: Final = frozenset({"utf-8", "utf8", "us-ascii"})
# A schema and a table.
MAX_TABLE_NAMES: Final = 2


class CsvParser(BaseParser):
    """Declares the content type; the import itself reads the body."""

    media_type = CSV


class ImportViewSet(LimitedViewSet):
    """CSV into a table of the caller's environment."""

    tag = "SQL"
    access = {"import_csv": needs("sql", "create")}
    errors = {
        "import_csv": (
            *STATEMENT_ERRORS,
            IdempotencyNotSupported,
            PayloadTooLarge,
            UnsupportedMedia,
            UploadInterrupted,
        ),
    }
    query_serializers = {"import_csv": ImportQuerySerializer}
    serializer_class = ImportSerializer
    parser_classes = (CsvParser,)

    @extend_schema(
        operation_id="sql_import", summary="Import CSV", request={CSV: {"type": "string"}}
    )
    @action(detail=False, methods=["post"], url_path="import")
    def import_csv(self, request: Request) -> Response:
        """Import a CSV body into a table: all of its rows, or none.

        The body is UTF-8, may be gzip (`Content-Encoding`), and is not held in memory. An empty
        value without quotes is NULL. `line` and `column_name` of an error are those of the body.
        A sequence from which an imported column takes its values is moved up to the largest one.
        """
        if not NEGOTIATOR.select_parser(request, self.get_parsers()):
            raise UnsupportedMedia(f"The content type here is {CSV}.")
        check_charset(request.content_type or "")
        environ = self.platform_request.META
        self.read_limits(self.principal)
        upload = UploadedBody(environ, limit_bytes=self.limits.import_bytes)
        refuse_repetition(environ)
        request_id = self.platform_request.request_id
        done = imports.run(
            Caller.of(self.principal),
            parsed(self.read_query()),
            upload,
            timeout_ms=self.limits.within(Quota.timeout_ms, settings.SQL.import_timeout_s * 1000),
            environ=environ,
            request_id=request_id,
        )
        value = {
            "command": "COPY",
            "row_count": done.row_count,
            "notices": done.notices,
            "stats": {"elapsed_ms": done.elapsed_ms, "bytes": done.size_bytes},
            "request_id": request_id,
        }
        return self.respond(value, headers=NO_STORE)


def check_charset(content_type: str) -> None:
    """Raise UnsupportedMedia unless a content type has no parameter but the charset UTF-8."""
    _, parameters = parse_header_parameters(content_type)
    for name, value in parameters.items():
        if name != "charset":
            raise UnsupportedMedia(
                f"The content type has a parameter {name}: use the query string."
            )
        if value.lower() not in CHARSETS:
            raise UnsupportedMedia("The charset of a body is UTF-8.")


def parsed(given: dict[str, Any]) -> ImportRequest:
    """Return the import of a validated query string. Raises InvalidRequest."""
    table = imports.parse_names(given["table"], separator=".", field="table")
    if len(table) > MAX_TABLE_NAMES:
        raise InvalidRequest.for_field("table", "A table's name has at most a schema before it.")
    names = {
        field: imports.parse_names(given[field], separator=",", field=field)
        for field in ("columns", "skip")
        if given.get(field)
    }
    return ImportRequest(
        table=table,
        columns=names.get("columns", ()),
        skip=names.get("skip", ()),
        header=given["header"],
        delimiter=given["delimiter"],
    )
