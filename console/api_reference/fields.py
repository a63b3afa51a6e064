"""The fields of a JSON Schema as rows of a table."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.safestring import SafeString

from console.api_reference import prose

Schema = Mapping[str, Any]
# Deeper fields are only in the example.
DEEPEST: Final = 3
_CHOICE: Final = re.compile(r"(?m)^\* `([^`]*)` - \1$")


@dataclass(frozen=True, kw_only=True)
class DocumentedField:
    """A parameter or a field of a body. name: dotted, `[]` behind a list."""

    name: str
    type: str
    is_required: bool
    about: list[SafeString]


class Reader:
    """Reads the schemas of one document."""

    def __init__(self, document: Schema) -> None:
        """document: its components resolve the references."""
        self._document = document

    def resolved(self, part: Schema) -> Schema:
        """Return the target of a reference with its sibling keys; other values unchanged."""
        inner = part["allOf"][0] if len(part.get("allOf", ())) == 1 else part
        if "$ref" not in inner:
            return part
        found: Any = self._document
        for name in inner["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return {**found, **{key: part[key] for key in part if key not in {"$ref", "allOf"}}}

    def parameters(self, operation: Schema) -> list[DocumentedField]:
        """Return an operation's parameters of path, query and headers."""
        return [
            DocumentedField(
                name=parameter["name"],
                type=self._type(parameter["schema"]),
                is_required=parameter.get("required", False),
                about=_about(parameter),
            )
            for parameter in operation.get("parameters", ())
        ]

    def fields(self, schema: Schema, prefix: str = "", depth: int = 1) -> Iterator[DocumentedField]:
        """Yield the fields of an object, or of the objects in a list, in depth-first order."""
        found = self.resolved(schema)
        if found.get("type") == "array":
            yield from self.fields(found["items"], f"{prefix}[]", depth)
            return
        required = found.get("required", ())
        for name, value in found.get("properties", {}).items():
            inner = self.resolved(value)
            path = f"{prefix}.{name}" if prefix else name
            yield DocumentedField(
                name=path,
                type=self._type(inner),
                is_required=name in required,
                about=_about(inner),
            )
            if depth < DEEPEST:
                yield from self.fields(inner, path, depth + 1)

    def _type(self, schema: Schema) -> str:
        found = self.resolved(schema)
        if "enum" in found:
            return " or ".join("null" if each is None else str(each) for each in found["enum"])
        if "oneOf" in found:
            return " or ".join(self._type(each) for each in found["oneOf"])
        types = found.get("type", "any")
        if types == "array":
            return f"array of {self._type(found['items'])}"
        name = " or ".join([types] if isinstance(types, str) else types)
        return name + _limits(found)


def _about(described: Schema) -> list[SafeString]:
    """Return a description without the lines that repeat the names of choices."""
    return prose.paragraphs(_CHOICE.sub("", described.get("description", "")))


def _limits(schema: Schema) -> str:
    if "maximum" in schema:
        return f" {schema.get('minimum', '')}–{schema['maximum']}"
    if "maxLength" in schema:
        return f", at most {schema['maxLength']} characters"
    return f", {schema['format']}" if "format" in schema else ""
