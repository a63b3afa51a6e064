"""The OpenAPI document as chapters of groups of operations, ready for the template."""

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.safestring import SafeString
from django.utils.text import slugify

from console.api_reference import prose
from console.api_reference.fields import DocumentedField, Reader

JSON: Final = "application/json"
FIRST_REFUSAL: Final = "400"


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
    reader = Reader(document)
    found: dict[str, list[DocumentedOperation]] = defaultdict(list)
    for path, method, operation in _operations(document):
        tag = operation["tags"][0]
        found[tag].append(_operation(reader, path, method, operation, base_url))
    about = {tag["name"]: tag["description"] for tag in document["tags"]}
    made = (
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
    return [chapter for chapter in made if chapter.groups]


def _operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method.upper(), operation


def _operation(
    reader: Reader, path: str, method: str, operation: Mapping[str, Any], base_url: str
) -> DocumentedOperation:
    content = operation.get("requestBody", {}).get("content", {})
    answers = [_answer(reader, *item) for item in operation["responses"].items()]
    return DocumentedOperation(
        id=operation["operationId"],
        method=method,
        path=path,
        summary=operation["summary"],
        about=prose.paragraphs(operation["description"]),
        parameters=reader.parameters(operation),
        body=list(reader.fields(content[JSON]["schema"])) if JSON in content else [],
        curl=_curl(method, base_url + path, operation, content),
        answers=[answer for answer in answers if answer.status < FIRST_REFUSAL],
        refusals=[answer for answer in answers if answer.status >= FIRST_REFUSAL],
    )


def _answer(reader: Reader, status: str, response: Mapping[str, Any]) -> DocumentedResponse:
    found = reader.resolved(response)
    content = found.get("content", {})
    body = content.get(JSON, {})
    return DocumentedResponse(
        status=status,
        about=prose.paragraphs(found["description"]),
        media=list(content),
        example=_pretty(body["example"]) if "example" in body else "",
        fields=list(reader.fields(body["schema"])) if body else [],
    )


def _curl(method: str, url: str, operation: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Return the command. The caller fills in $TOKEN and what is in braces."""
    is_implied = method == "GET" or (method == "POST" and content)
    lines = [" ".join(["curl", *([] if is_implied else ["-X", method]), shlex.quote(url)])]
    if any(operation.get("security", ())):
        lines.append('-H "Authorization: Bearer $TOKEN"')
    for media, body in list(content.items())[:1]:
        lines.append(f"-H 'Content-Type: {media}'")
        lines.append(f"-d {shlex.quote(_pretty(body.get('example', {})))}")
    return " \\\n  ".join(lines)


def _pretty(example: object) -> str:
    return json.dumps(example, indent=2, ensure_ascii=False)
