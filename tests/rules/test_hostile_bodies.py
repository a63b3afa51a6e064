"""No body makes a route crash: each field of each request receives hostile values."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator

from common.api.viewsets import PlatformViewSet
from environments.models import Organization
from tests.cast import member, signed_in
from tests.rules.routes import Route, api_routes

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
MEGABYTE = 2**20
NOBODYS = "00000000-0000-7000-8000-000000000000"
HOSTILE: list[Any] = [
    "a\0b",
    "x" * 5000,
    2**70,
    None,
    ["a\0b"],
    {"a\0b": {"c": ["\0"]}},
]
# What makes a body otherwise right, so that the hostile field is what is looked at.
PLAUSIBLE: dict[str, Any] = {
    "email": "nobody@example.com",
    "password": "correct horse battery staple",
    "org_id": 1,
    "method": "email",
    "phone_number": "+4915123456789",
    "code": "123456",
    "roles": ["reader"],
    "query": "SELECT 1",
}
SAMPLES: dict[str, Any] = {
    "string": "x",
    "integer": 1,
    "number": 1,
    "boolean": True,
    "array": [],
    "object": {},
}


@cache
def schema() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # untyped library
    found: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]  # as above
    return found


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the schema, with its references resolved."""
    for inner in (part, *part.get("allOf", ())):
        if "$ref" in inner:
            name = inner["$ref"].rpartition("/")[2]
            return dict(schema()["components"]["schemas"][name])
    return part


def fields(route: Route, method: str) -> dict[str, Any]:
    """Return the properties of a request's body, with a plausible value for each."""
    path = "/" + route.path.replace("<str:", "{").replace(">", "}")
    operation = schema()["paths"].get(path, {}).get(method.lower(), {})
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    properties = resolved(content.get("schema", {})).get("properties", {})
    return {name: plausible(name, resolved(kind)) for name, kind in properties.items()}


def plausible(name: str, kind: dict[str, Any]) -> Any:
    if name in PLAUSIBLE:
        return PLAUSIBLE[name]
    types = kind.get("type", "")
    first = types[0] if isinstance(types, list) else types
    return kind["enum"][0] if "enum" in kind else SAMPLES.get(first, "x")


def bodies(route: Route, method: str) -> Iterator[dict[str, Any]]:
    right = fields(route, method)
    for name in right:
        for value in HOSTILE:
            yield right | {name: value}


def takes_body(route: Route, method: str) -> bool:
    """True if the action reads JSON, or has parsers of its own."""
    assert issubclass(route.view, PlatformViewSet)
    actions = dict(route.actions)
    options = [getattr(getattr(route.view, name), "kwargs", {}) for name in actions.values()]
    has_parsers = any("parser_classes" in each for each in (vars(route.view), *options))
    return has_parsers or actions[method] in route.view.request_serializers


WRITES = [
    (route, method)
    for route in api_routes()
    for method in route.methods
    if method in {"POST", "PUT", "PATCH"}
]


def ids(value: object) -> str:
    return value.path if isinstance(value, Route) else str(value)


WITHOUT_BODY = [
    (route, method)
    for route in api_routes()
    for method in route.methods
    if not takes_body(route, method)
]


def path_of(route: Route) -> str:
    return route.filled(dict.fromkeys(route.placeholders, NOBODYS))


@pytest.mark.parametrize(("route", "method"), WRITES, ids=ids)
def test_no_value_of_any_field_crashes(home: Organization, route: Route, method: str) -> None:
    user = member(home)
    for body in bodies(route, method):
        # A session each, as some actions end it.
        answer = signed_in(user).call(method, path_of(route), body)
        assert answer.status not in {500, 502}, (body, answer.body)
        if answer.status >= 400:
            assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("route", "method"), WRITES, ids=ids)
def test_a_body_of_ten_megabytes_is_refused(home: Organization, route: Route, method: str) -> None:
    body = b'{"x": "' + b"y" * 10 * MEGABYTE + b'"}'
    answer = signed_in(member(home)).call(method, path_of(route), body)
    assert answer.status in {400, 403, 404, 409, 413, 415}


@pytest.mark.parametrize(("route", "method"), WITHOUT_BODY, ids=ids)
def test_an_operation_without_a_body_refuses_one(
    home: Organization, route: Route, method: str
) -> None:
    caller = signed_in(member(home))
    answer = caller.call(method, path_of(route), {"force": True})
    assert answer.status == 400, answer.body
    assert answer.body["detail"] == "This operation takes no body."
    # What clients send that send an object always.
    assert caller.call(method, path_of(route), {}).body != answer.body
