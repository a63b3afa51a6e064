"""Compare requests and responses of the API with docs/openapi.yaml.

``install`` puts ``check`` behind Django's test client, so that every exchange is held against it.
Response schemas are closed here, so that a field that the document does not declare is found; for
clients they stay open, because a later release may add fields.
"""

import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import parse_qsl

import jsonschema_rs
import yaml
from django.test.client import Client, FakePayload

DOCUMENT: Final = Path(__file__).resolve().parents[1] / "docs/openapi.yaml"
# Where references in the document point to, once it is in a registry.
BASE: Final = "urn:zonal:openapi"
API: Final = "/v1/"
# The document describes neither itself nor the page that shows it.
DOCUMENTS: Final = frozenset({"/v1/schema", "/v1/docs"})
JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"
MAX_BYTES: Final = 2**20
# The console's middleware moves these from response bodies into cookies.
CONSOLE_TOKENS: Final = frozenset({"access_token", "refresh_token", "mfa_token", "reset_token"})
# Its middleware may refuse any request of the console's; the API's own clients never see it.
CONSOLE_CODE: Final = "csrf_failed"
# What other sites send, in their own forms.
FOREIGN_BODIES: Final = frozenset(("/v1/billing/webhooks/stripe",))
# What a path that is not in the document, or a method that its path does not have, answers.
UNDECLARED: Final = frozenset({400, 403, 404, 405})


Schemas = Literal["requests", "responses", "console responses"]


class NotConformantError(AssertionError):
    """A response, or a request that was accepted, contradicts docs/openapi.yaml."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """A request and its response; bodies are parsed, None without one.

    request_body: None also where it is not JSON.
    """

    method: str
    path: str
    request_body: Any
    status: int
    media: str
    body: Any
    is_console: bool = False


class _Switch:
    """The state of the check: on, or paused."""

    is_on = True


@contextmanager
def unchecked() -> Iterator[None]:
    """Pause the check, for tests that install their own view or stage."""
    _Switch.is_on = False
    try:
        yield
    finally:
        _Switch.is_on = True


def install(listen: Callable[[Exchange, bytes], None] | None = None) -> None:
    """Check every request that Django's test client sends and every response that it receives.

    listen: called with each exchange that was checked, and the bytes that were sent.
    """
    send = Client.request

    def request(self: Client, **environ: Any) -> Any:
        sent = environ["wsgi.input"].read() if "wsgi.input" in environ else b""
        response = send(self, **{**environ, "wsgi.input": FakePayload(sent)})
        exchange = _exchange(environ, sent, response)
        check(exchange)
        if listen is not None and _Switch.is_on:
            listen(exchange, sent)
        return response

    Client.request = request  # type: ignore[method-assign]  # of every client, also raw ones


def _exchange(environ: dict[str, Any], sent: bytes, response: Any) -> Exchange:
    query = environ.get("QUERY_STRING", "")
    has_body = response.streaming or response.content
    media = response.get("Content-Type", "") if has_body else ""
    return Exchange(
        method=environ["REQUEST_METHOD"],
        path=f"{environ['PATH_INFO']}?{query}" if query else environ["PATH_INFO"],
        request_body=_parsed(environ.get("CONTENT_TYPE", ""), sent),
        status=response.status_code,
        media=media,
        body=None if response.streaming else _parsed(media, response.content),
        is_console="HTTP_X_ZONAL_CONSOLE" in environ,
    )


def _parsed(media: str, body: bytes) -> Any:
    """Return a body of JSON; None if it is another, malformed, or too long for any operation."""
    if not 0 < len(body) < MAX_BYTES or not re.fullmatch(
        r"application/([\w.-]+\+)?json(;.*)?", media
    ):
        return None
    with suppress(ValueError, RecursionError):
        return json.loads(body)
    return None


def check(exchange: Exchange) -> None:
    """Raise NotConformantError unless the document declares this response to this request."""
    path = exchange.path.partition("?")[0]
    if not (_Switch.is_on and path.startswith(API)) or path.removesuffix("/") in DOCUMENTS:
        return
    method, template = exchange.method.lower(), template_of(path)
    method = "get" if method == "head" else method
    where = f"{exchange.method} {template or path} -> {exchange.status}"
    operation = document()["paths"].get(template, {}).get(method)
    if template is None or operation is None:
        if exchange.status not in UNDECLARED:
            raise NotConformantError(f"{where}: the document has no such operation")
        return
    if exchange.method != "HEAD":
        _check_response(exchange, template, method, where)
    if exchange.is_console:
        return  # its middleware adds tokens to the request
    if exchange.status < HTTPStatus.BAD_REQUEST:
        _check_query(exchange, template, method, where)
        if exchange.request_body:
            _check_request(exchange, template, method, where)


def _check_response(exchange: Exchange, template: str, method: str, where: str) -> None:
    if exchange.is_console and exchange.body and exchange.body.get("code") == CONSOLE_CODE:
        return
    content = _content(template, method, str(exchange.status))
    if content is None:
        raise NotConformantError(f"{where}: the document has no such status: {exchange.body}")
    media = exchange.media.partition(";")[0]
    if media not in (content or {""}):
        raise NotConformantError(f"{where}: the document does not declare {media!r}")
    if not content or "json" not in media:
        return
    validator = _response_validator(
        template, method, str(exchange.status), media, exchange.is_console
    )
    _validate(validator, exchange.body, where)
    if media == PROBLEM:
        _check_code(exchange.body["code"], content[PROBLEM], where)


def _check_code(code: str, declared: dict[str, Any], where: str) -> None:
    if code not in declared["examples"]:
        raise NotConformantError(f"{where}: the document does not declare the code {code!r}")


def _check_request(exchange: Exchange, template: str, method: str, where: str) -> None:
    validator = _request_validator(template, method)
    if template in FOREIGN_BODIES:
        return
    if validator is None:
        raise NotConformantError(f"{where}: the document declares no request body")
    _validate(validator, exchange.request_body, f"{where}: its request")


def _check_query(exchange: Exchange, template: str, method: str, where: str) -> None:
    declared = {
        parameter["name"]: parameter["schema"]
        for parameter in document()["paths"][template][method].get("parameters", ())
        if parameter["in"] == "query"
    }
    query = exchange.path.partition("?")[2]
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name not in declared:
            raise NotConformantError(f"{where}: the document declares no {name!r} in its query")
        schema = declared[name]
        validator = _compiled(json.dumps(schema), "requests")
        _validate(validator, _value_of(text, schema), f"{where}: {name!r} in its query")


def _value_of(text: str, schema: dict[str, Any]) -> Any:
    """Return a query's text as the type that its schema declares, or as it is."""
    if schema.get("type") in {"integer", "number", "boolean"}:
        with suppress(json.JSONDecodeError):
            return json.loads(text)
    return text


def _validate(validator: jsonschema_rs.Draft202012Validator, body: Any, where: str) -> None:
    for error in validator.iter_errors(body):
        place = "/".join(str(part) for part in error.instance_path)
        raise NotConformantError(f"{where}: at /{place}: {error.message}")


@functools.cache
def document() -> dict[str, Any]:
    """Return the committed document."""
    text = DOCUMENT.read_text(encoding="utf-8")
    # The parser in C: the other one takes seconds.
    loaded: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return loaded


def document_as_read() -> dict[str, Any]:
    """Return a copy of the document in which a number is valid where a text is expected."""
    read: dict[str, Any] = json.loads(json.dumps(document()))
    _each_object(read["components"]["schemas"], _accept_numbers_as_text)
    return read


@functools.lru_cache(maxsize=4096)
def template_of(path: str) -> str | None:
    """Return the path of the document that a request's path matches, None without one."""
    if path in document()["paths"]:
        return path
    return next((name for pattern, name in _templates() if pattern.fullmatch(path)), None)


@functools.cache
def _templates() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path))), path)
        for path in document()["paths"]
        if "{" in path
    )


def _content(template: str, method: str, status: str) -> dict[str, Any] | None:
    """Return the content of a response by media type; None if its status is not declared."""
    response = document()["paths"][template][method]["responses"].get(status)
    if response is None:
        return None
    if "$ref" in response:
        response = document()["components"]["responses"][response["$ref"].rpartition("/")[2]]
    content: dict[str, Any] = response.get("content", {})
    return content


def _response_validator(
    template: str, method: str, status: str, media: str, is_console: bool
) -> jsonschema_rs.Draft202012Validator:
    content = _content(template, method, status) or {}
    schemas = "console responses" if is_console else "responses"
    return _compiled(json.dumps(content[media]["schema"]), schemas)


def _request_validator(template: str, method: str) -> jsonschema_rs.Draft202012Validator | None:
    declared = document()["paths"][template][method].get("requestBody")
    if declared is None:
        return None
    return _compiled(json.dumps(declared["content"][JSON]["schema"]), "requests")


@functools.cache
def _compiled(schema: str, schemas: Schemas) -> jsonschema_rs.Draft202012Validator:
    # Most schemas are one reference, and many operations share them.
    absolute = json.loads(schema.replace('"#/', f'"{BASE}#/'))
    # Formats of requests are not checked: an address is accepted with blanks around it, for one.
    return jsonschema_rs.Draft202012Validator(
        absolute, registry=_registry(schemas), validate_formats=schemas != "requests"
    )


@functools.cache
def _registry(schemas: Schemas) -> jsonschema_rs.Registry:
    """Return the document's schemas as they are for requests, or closed for responses."""
    components = json.loads(json.dumps(document()["components"]["schemas"]))
    changes: dict[Schemas, list[Callable[[dict[str, Any]], None]]] = {
        "requests": [_accept_numbers_as_text],
        "responses": [_close],
        "console responses": [_close, _drop_tokens],
    }
    for change in changes[schemas]:
        _each_object(components, change)
    return jsonschema_rs.Registry([(BASE, {"components": {"schemas": components}})])


def _each_object(part: Any, change: Callable[[dict[str, Any]], None]) -> None:
    """Call ``change`` with each JSON object in a part of the document."""
    if isinstance(part, dict):
        change(part)
    for value in part.values() if isinstance(part, dict) else part:
        if isinstance(value, dict | list):
            _each_object(value, change)


def _close(schema: dict[str, Any]) -> None:
    if schema.get("type") == "object" and "properties" in schema:
        schema.setdefault("additionalProperties", False)


def _drop_tokens(schema: dict[str, Any]) -> None:
    if isinstance(schema.get("required"), list):
        schema["required"] = [name for name in schema["required"] if name not in CONSOLE_TOKENS]


def _accept_numbers_as_text(schema: dict[str, Any]) -> None:
    # DRF reads a number where a text is expected.
    types = schema.get("type")
    if "string" in (types if isinstance(types, list) else [types]):
        schema["type"] = [*(types if isinstance(types, list) else [types]), "number"]
