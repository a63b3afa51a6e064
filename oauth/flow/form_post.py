"""The body of a form post callback (OAuth 2.0 Form Post Response Mode), read strictly."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from rest_framework.parsers import BaseParser

from common.errors import InvalidRequest, PayloadTooLarge

MAX_BYTES: Final = 32 * 1024
MAX_FIELDS: Final = 20


class FormPostParser(BaseParser):
    """Read ``application/x-www-form-urlencoded`` within bounds, each field once."""

    media_type = "application/x-www-form-urlencoded"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, str]:
        """Return the fields. Raises PayloadTooLarge (413), InvalidRequest (400)."""
        body = stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise PayloadTooLarge(f"The limit here is {MAX_BYTES} bytes.")
        try:
            pairs = parse_qsl(body.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict")
        except ValueError as exc:
            raise InvalidRequest("The form cannot be read.") from exc
        return without_repeats(pairs)


def without_repeats(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return the pairs as a mapping.

    Raises InvalidRequest (400) for a repeated name: RFC 6749 §3.1 forbids it, and two readers could
    differ on which value counts.
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InvalidRequest("A parameter is given twice.")
    return values
