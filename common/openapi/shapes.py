"""JSON Schemas of path parameters, and of members of problem documents beyond RFC 9457."""

from collections.abc import Mapping
from typing import Any, Final

Shape = Mapping[str, Any]

TEXT: Final[Shape] = {"type": "string"}
UUID: Final[Shape] = {"type": "string", "format": "uuid"}
BASE64URL: Final[Shape] = {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"}
TEXTS: Final[Shape] = {"type": "array", "items": {"type": "string"}}
BOOLEAN: Final[Shape] = {"type": "boolean"}
COUNT: Final[Shape] = {"type": "integer", "minimum": 0}
NUMBER: Final[Shape] = {"type": "number", "minimum": 0}
UNIX_SECONDS: Final[Shape] = {"type": "integer", "minimum": 0, "description": "Unix seconds."}
DNS_RECORD: Final[Shape] = {
    "type": "object",
    "description": "The DNS record to add.",
    "required": ["type", "name", "value"],
    "properties": {"type": TEXT, "name": TEXT, "value": TEXT},
}
