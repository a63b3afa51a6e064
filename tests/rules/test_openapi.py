"""Clients can be generated from the OpenAPI document, and its examples are correct."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jsonschema_rs
import pytest
from pytest_django import Settings

from accounts.models import User
from common.openapi.examples import recorded
from tests import recorder
from tests.cast import Caller, signed_in
from tests.conformance import JSON, PROBLEM, Exchange, NotConformantError, check, document

METHODS = ("get", "post", "put", "patch", "delete")
NOBODY = "00000000-0000-7000-8000-000000000000"


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document()["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def every_schema(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, dict | list):
            yield from every_schema(inner)


def resolved(content: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    schema = {**content["schema"], "components": document()["components"]}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True)


def contents() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the JSON contents of requests and successful responses, named."""
    for path, method, operation in operations():
        name = f"{method.upper()} {path}"
        body = operation.get("requestBody", {}).get("content", {})
        if JSON in body:
            yield f"{name} request", body[JSON]
        for status, response in operation["responses"].items():
            if status < "300" and JSON in response.get("content", {}):
                yield f"{name} {status}", response["content"][JSON]


REQUESTS = [
    (method.upper(), path, operation["requestBody"]["content"][JSON]["example"])
    for path, method, operation in operations()
    if "example" in operation.get("requestBody", {}).get("content", {}).get(JSON, {})
]


def test_each_operation_has_an_example_of_its_bodies() -> None:
    """Of an object without fields none is needed."""
    schemas = document()["components"]["schemas"]
    for name, content in contents():
        component = content["schema"].get("$ref", "").rpartition("/")[2]
        schema = schemas.get(component, content["schema"])
        is_empty = schema.keys() == {"type", "description", "additionalProperties"}
        assert "example" in content or is_empty, name


def test_each_example_is_valid() -> None:
    for name, content in contents():
        if "example" in content:
            errors = [error.message for error in resolved(content).iter_errors(content["example"])]
            assert not errors, f"{name}: {errors}"


@pytest.mark.parametrize(("method", "path", "body"), REQUESTS)
@pytest.mark.django_db
def test_each_example_of_a_request_is_accepted_as_well_formed(
    method: str, path: str, body: dict[str, Any], alice: User, settings: Settings
) -> None:
    # Where the tests of passkeys, which the examples are from, have them.
    origins = ("https://app.example.com", "https://example.com")
    settings.TWOFACTOR = replace(settings.TWOFACTOR, webauthn_origins=origins)
    filled = path.replace("{provider}", "google")
    while "{" in filled:
        before, _, after = filled.partition("{")
        filled = before + NOBODY + after.partition("}")[2]
    answer = signed_in(alice).call(method, filled, body)
    if answer.status == 400:
        assert answer.code not in {"invalid_request", "malformed_json"}, answer.body
    assert answer.status != 500


@pytest.mark.django_db
def test_the_example_of_sql_runs(alice: User) -> None:
    example = recorded()["POST /v1/sql"]
    answer = signed_in(alice).post("/v1/sql", example["request"])
    assert (answer.status, answer.body["rows"]) == (200, example["response"]["rows"])


def test_examples_have_no_secret_id_or_time_of_a_test_run() -> None:
    changed = {
        key
        for key, example in recorded().items()
        if recorder.Masks(example).masked(example) != example
    }
    assert not changed


@pytest.mark.parametrize(
    ("field", "secret"),
    [
        ("access_token", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbGljZSJ9.WmVTtpaBqB3mHZcKDnS0JQ"),
        ("device_token", "0199c0de-92e1-7213-87f6-c990b2d80d7d.2f9b5785be81ee28caf0c23"),
        ("key", "zk_live_5WmVTtpaBqB3mHZcKDnS0JQ"),
        ("secret_access_key", "SNzBkddXPQ-lvdaXm1X5EybeaQbGGnAStFgnTs3U"),
        ("note", "the key is E3Kr2ii6PFOm1PuujF849dRkZgqu_UdKYfHzcLuqnno"),
        ("url", "http://testserver/x?X-Amz-Signature=0d5cbd0c3b3b1d6a3ac9f3a0f1f8b1f4"),
        ("backup_codes", "VQZM-TP0P-5HGR-V5H1"),
        ("secret", "ZIXYCTJEOLJDQPKC"),
        ("code", "860131"),
        ("password", "hunter2"),
    ],
)
def test_a_recorded_secret_is_replaced(field: str, secret: str) -> None:
    given: dict[str, Any] = {field: [secret] if field == "backup_codes" else secret}
    text = json.dumps(recorder.Masks(given).masked(given))
    pieces = re.findall(r"[A-Za-z0-9]{5,}", secret)
    kept = {piece for piece in pieces if piece in text}
    assert kept <= {"testserver", "Signature", "eyJhbGciOiJIUzI1NiJ9"}, text


def test_no_default_contradicts_its_schema() -> None:
    """A generated client sends defaults, so the API must accept them."""
    for schema in every_schema(document()["components"]["schemas"]):
        # A table of members may have one that is called ``type``: then it is no schema.
        if "default" in schema and isinstance(schema.get("type"), str | list):
            validator = jsonschema_rs.Draft202012Validator(schema)
            assert validator.is_valid(schema["default"]), schema


def test_each_number_has_a_minimum() -> None:
    for name, schema in document()["components"]["schemas"].items():
        for field, value in schema.get("properties", {}).items():
            types = value.get("type", ())
            if {"integer", "number"} & {*([types] if isinstance(types, str) else types)}:
                assert "minimum" in value, f"{name}.{field}"


def test_bodies_that_refuse_unknown_fields_say_so() -> None:
    for path, method, operation in operations():
        content = operation.get("requestBody", {}).get("content", {})
        if JSON in content:
            name = content[JSON]["schema"]["$ref"].rpartition("/")[2]
            schema = document()["components"]["schemas"][name]
            assert schema["additionalProperties"] is False, f"{method} {path}"


def test_each_error_response_names_its_codes() -> None:
    for path, method, operation in operations():
        assert "default" not in operation["responses"], f"{method} {path}"
        refused = [status for status in operation["responses"] if status >= "400"]
        assert {"400", "500", "503"} <= {*refused}, f"{method} {path}"


def test_each_recorded_example_is_of_an_operation() -> None:
    assert recorded().keys() <= {f"{method.upper()} {path}" for path, method, _ in operations()}


@pytest.mark.django_db
@pytest.mark.parametrize("size", ["null", "", "0", "-1", "1.5", "a"])
def test_a_page_size_that_is_not_a_number_is_refused(size: str, alice: User) -> None:
    caller: Caller = signed_in(alice)
    answer = caller.get(f"/v1/environments?page_size={size}")
    assert (answer.status, answer.code) == (400, "invalid_request")
    assert answer.body["errors"][0]["field"] == "page_size"


@pytest.mark.django_db
def test_a_page_size_beyond_the_largest_is_the_largest(alice: User) -> None:
    assert signed_in(alice).get("/v1/environments?page_size=201").status == 200


def exchange(**changes: Any) -> Exchange:
    answers = document()["paths"]["/v1/environments/{environment_id}"]["get"]["responses"]
    environment = answers["200"]["content"][JSON]["example"]
    plain = Exchange(
        method="GET",
        path="/v1/environments/live",
        request_body=None,
        status=200,
        media=JSON,
        body=environment,
    )
    return replace(plain, **changes)


PROBLEM_BODY = {
    "type": "urn:zonal:problem:x",
    "title": "x",
    "status": 404,
    "code": "environment_not_found",
    "request_id": "x",
}


def test_a_declared_response_passes() -> None:
    check(exchange())
    check(exchange(status=404, media=PROBLEM, body=PROBLEM_BODY))


@pytest.mark.parametrize(
    "changes",
    [
        {"body": exchange().body | {"undeclared": 1}},
        {"body": {"id": "live"}},
        {"body": exchange().body | {"created_at": "yesterday"}},
        {"status": 201},
        {"media": "text/plain"},
        {"status": 404, "media": PROBLEM, "body": PROBLEM_BODY | {"code": "bucket_not_found"}},
        {"status": 404, "media": PROBLEM, "body": PROBLEM_BODY | {"undeclared": 1}},
        {"path": "/v1/nowhere"},
    ],
)
def test_an_undeclared_response_fails(changes: dict[str, Any]) -> None:
    with pytest.raises(NotConformantError):
        check(exchange(**changes))


def test_a_query_that_is_not_declared_fails() -> None:
    page: dict[str, Any] = {"next": None, "previous": None, "results": []}
    check(exchange(path="/v1/environments?page_size=10", body=page))
    for query in ("page_size=0", "page_size=ten", "size=10"):
        with pytest.raises(NotConformantError, match="query"):
            check(exchange(path=f"/v1/environments?{query}", body=page))
