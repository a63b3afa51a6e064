"""Statements as CSV, streamed."""

import csv
import io
from collections.abc import Iterator
from datetime import date
from typing import Final

from django.http import StreamingHttpResponse
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from billing import statements
from common.api.views import NEGOTIATOR, RENDERER

CONTENT_TYPE: Final = "text/csv"
COLUMNS: Final = (
    "usage_id",
    "used_at",
    "node_id",
    "kind",
    "units",
    "rate_ucr",
    "charge_ucr",
    "paid_ucr",
    "share_ppm",
    "amount_ucr",
)


class Csv(BaseRenderer):
    """Declares the media type; the body is a stream."""

    media_type = CONTENT_TYPE
    format = "csv"


def is_accepted(request: Request) -> bool:
    """True if the client asks for CSV. Raises rest_framework.exceptions.NotAcceptable (406)."""
    renderer, _ = NEGOTIATOR.select_renderer(request, [RENDERER, Csv()])
    return bool(renderer.format == Csv.format)


def rows(organization_id: int, month: date) -> Iterator[str]:
    """Yield a month's statement in lines of CSV, the column names first."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for number, line in enumerate(statements.statement_lines(organization_id, month), 1):
        line["used_at"] = line["used_at"].isoformat()
        writer.writerow(line[name] for name in COLUMNS)
        if number % statements.PAGE_LINES == 0:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def response(organization_id: int, month: date) -> StreamingHttpResponse:
    """Return the answer with a month's statement."""
    return StreamingHttpResponse(
        rows(organization_id, month),
        content_type=CONTENT_TYPE,
        headers={
            "Content-Disposition": f'attachment; filename="statement-{month:%Y-%m}.csv"',
            "Cache-Control": "no-store",
        },
    )
