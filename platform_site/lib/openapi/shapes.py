"""JSON Schemas of the members that problem documents have beyond those of RFC 9457."""

from collections.abc import Mapping
from typing import Any, Final

Shape = Mapping[str, Any]

TEXT: Final[Shape] = {"type": "string"}
TEXTS: Final[Shape] = {"type": "array", "items": {"type": "string"}}
BOOLEAN: Final[Shape] = {"type": "boolean"}
COUNT: Final[Shape] = {"type": "integer", "minimum": 0}
NUMBER: Final[Shape] = {"type": "number"}
UNIX_SECONDS: Final[Shape] = {"type": "integer", "description": "Unix seconds."}
DNS_RECORD: Final[Shape] = {
    "type": "object",
    "description": "The DNS record to add.",
    "required": ["type", "name", "value"],
    "properties": {"type": TEXT, "name": TEXT, "value": TEXT},
}
