"""Request and response bodies: one strict JSON object, read and written with orjson."""

from collections.abc import Mapping
from typing import Any

import orjson
from django.conf import settings
from rest_framework.parsers import BaseParser
from rest_framework.renderers import JSONRenderer

from platform_site.lib.errors import MalformedJson, PayloadTooLarge


class StrictJsonParser(BaseParser):
    """Read one JSON object, at most the view's ``body_limit_bytes`` long."""

    media_type = "application/json"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the object.

        Raises PayloadTooLarge (413), MalformedJson (400: no JSON, no object, NaN, not UTF-8).
        """
        context = parser_context or {}
        limit = getattr(context.get("view"), "body_limit_bytes", settings.BODY_LIMIT_BYTES)
        # One byte past the limit shows that a body is too long without reading all of it.
        body = stream.read(limit + 1)
        if len(body) > limit:
            raise PayloadTooLarge(f"The limit here is {limit} bytes.")
        try:
            value = orjson.loads(body)
        except (orjson.JSONDecodeError, RecursionError) as exc:
            raise MalformedJson from exc
        if not isinstance(value, dict):
            raise MalformedJson
        return value


class OrjsonRenderer(JSONRenderer):
    """Write JSON with orjson: UUIDs and aware datetimes as RFC 3339 text, in one pass."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        """Return the bytes; nothing at all for None, as a 204 has no body."""
        return b"" if data is None else orjson.dumps(data, default=str, option=orjson.OPT_UTC_Z)
