"""The OpenAPI document as chapters of groups of operations, ready for the template.

Fields of JSON Schemas become rows of tables, and the Markdown of descriptions becomes HTML.
"""

import json
import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import slugify

_PARAGRAPHS: Final = re.compile(r"\n\s*\n|\n(?=\* )")
_CODE: Final = re.compile(r"`([^`]+)`")
_STRONG: Final = re.compile(r"\*\*([^*]+)\*\*")
Schema = Mapping[str, Any]
# Deeper fields are only in the example.
MAX_DEPTH: Final = 3
_CHOICE: Final = re.compile(r"(?m)^\* `([^`]*)` - \1$")
JSON_MEDIA: Final = "application/json"
FIRST_ERROR_STATUS: Final = "400"


@dataclass(frozen=True, kw_only=True)
class DocumentedField:
    """A parameter or a field of a body. name: dotted, `[]` behind a list."""

    name: str
    type: str
    is_required: bool
    about: list[SafeString]


@dataclass(frozen=True, kw_only=True)
class DocumentedResponse:
    """A status of an operation's responses. example: '' without a JSON body."""

    status: str
    about: list[SafeString]
    media: list[str]
    example: str
    fields: list[DocumentedField]


@dataclass(frozen=True, kw_only=True)
class DocumentedOperation:
    """One operation. curl: a shell command that sends it."""

    id: str
    method: str
    path: str
    summary: str
    about: list[SafeString]
    parameters: list[DocumentedField]
    body: list[DocumentedField]
    curl: str
    answers: list[DocumentedResponse]
    refusals: list[DocumentedResponse]


@dataclass(frozen=True, kw_only=True)
class OperationGroup:
    """The operations under one tag."""

    id: str
    name: str
    about: str
    operations: list[DocumentedOperation]


@dataclass(frozen=True, kw_only=True)
class Chapter:
    """A chapter of groups."""

    name: str
    groups: list[OperationGroup]


def chapters(document: Mapping[str, Any], base_url: str) -> list[Chapter]:
    """Return the document's operations in the order of its tags."""
    reader = SchemaReader(document)
    found: dict[str, list[DocumentedOperation]] = defaultdict(list)
    for path, method, operation in _operations(document):
        tag = operation["tags"][0]
        found[tag].append(_operation(reader, path, method, operation, base_url))
    about = {tag["name"]: tag["description"] for tag in document["tags"]}
    all_chapters = (
        Chapter(
            name=chapter["name"],
            groups=[
                OperationGroup(
                    id=f"group-{slugify(tag)}", name=tag, about=about[tag], operations=found[tag]
                )
                for tag in chapter["tags"]
                if tag in found
            ],
        )
        for chapter in document["x-tagGroups"]
    )
    return [chapter for chapter in all_chapters if chapter.groups]


class SchemaReader:
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
            if depth < MAX_DEPTH:
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


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _operation(
    reader: SchemaReader, path: str, method: str, operation: Mapping[str, Any], base_url: str
) -> DocumentedOperation:
    content = operation.get("requestBody", {}).get("content", {})
    answers = [_answer(reader, *item) for item in operation["responses"].items()]
    return DocumentedOperation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        about=paragraphs(operation["description"]),
        parameters=reader.parameters(operation),
        body=list(reader.fields(content[JSON_MEDIA]["schema"])) if JSON_MEDIA in content else [],
        curl=_curl(method, base_url + path, operation, content),
        answers=[answer for answer in answers if answer.status < FIRST_ERROR_STATUS],
        refusals=[answer for answer in answers if answer.status >= FIRST_ERROR_STATUS],
    )


def _answer(reader: SchemaReader, status: str, response: Mapping[str, Any]) -> DocumentedResponse:
    found = reader.resolved(response)
    content = found.get("content", {})
    body = content.get(JSON_MEDIA, {})
    return DocumentedResponse(
        status=status,
        about=paragraphs(found["description"]),
        media=list(content),
        example=_pretty(body["example"]) if "example" in body else "",
        fields=list(reader.fields(body["schema"])) if body else [],
    )


def _curl(method: str, url: str, operation: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Return the command. The caller fills in $ZONAL_TOKEN and what is in braces."""
    is_implied = method == "GET" or (method == "POST" and content)
    lines = [" ".join(["curl", *([] if is_implied else ["-X", method]), shlex.quote(url)])]
    if any(operation.get("security", ())):
        lines.append('-H "Authorization: Bearer $ZONAL_TOKEN"')
    for media, body in list(content.items())[:1]:
        lines.append(f"-H 'Content-Type: {media}'")
        lines.append(f"-d {shlex.quote(_pretty(body.get('example', {})))}")
    return " \\\n  ".join(lines)


def _pretty(example: object) -> str:
    return json.dumps(example, indent=2, ensure_ascii=False)


def _about(described: Schema) -> list[SafeString]:
    """Return a description without the lines that repeat the names of choices."""
    return paragraphs(_CHOICE.sub("", described.get("description", "")))


def _limits(schema: Schema) -> str:
    if "maximum" in schema:
        return f" {schema.get('minimum', '')}–{schema['maximum']}"
    if "maxLength" in schema:
        return f", at most {schema['maxLength']} characters"
    return f", {schema['format']}" if "format" in schema else ""


def paragraphs(text: str) -> list[SafeString]:
    """Return each paragraph, and each item of a list, as HTML without its outer element."""
    return [
        inline(part.strip().removeprefix("* ")) for part in _PARAGRAPHS.split(text) if part.strip()
    ]


def inline(text: str) -> SafeString:
    """Return one paragraph as HTML, with ``code`` and **strong**; everything else is escaped."""
    marked = _CODE.sub(r"<code>\1</code>", escape(text))
    return mark_safe(_STRONG.sub(r"<strong>\1</strong>", marked))  # noqa: S308 - escaped above
