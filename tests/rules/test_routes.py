"""Every route enforces its declared access: route × method × role."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import transaction

from accounts.models import User
from common.api.views import ApiView
from common.api.viewsets import PlatformViewSet
from common.permissions import ROLES, TABLE, is_permitted
from environments.models import Organization
from tests.cast import Caller, member, signed_in
from tests.rules.routes import Route, api_routes

ROUTES = api_routes()
EACH = [(route, method) for route in ROUTES for method in route.methods]
CLOSED = [(route, method) for route, method in EACH if route.access_of(method).kind != "public"]
PUBLIC = [each for each in EACH if each not in CLOSED]
BY_ROLE = [(route, method) for route, method in CLOSED if route.access_of(method).resource]
# They read the query string themselves, some after the path; Stripe and providers call two of them.
WITH_OWN_QUERIES = {
    "v1/auth/oauth/<str:provider>/callback",
    "v1/auth/oauth/<str:provider>/start",
    "v1/billing/webhooks/stripe",
    "v1/sql/import",
}
NOBODYS = "00000000-0000-7000-8000-000000000000"


def ids(value: object) -> str:
    return value.path if isinstance(value, Route) else str(value)


def sent(caller: Caller, route: Route, method: str) -> tuple[int, str]:
    path = route.filled(dict.fromkeys(route.placeholders, NOBODYS))
    answer = caller.call(method, path, {} if method != "GET" else None)
    return answer.status, (answer.body or {}).get("code", "")


CLOSED_NAMES = [f"{method} {route.path}" for route, method in CLOSED]


def outcomes(caller: Caller) -> dict[str, tuple[int, str]]:
    """Return status and code of every route that is not public, by method and path."""
    answers = [sent(caller, route, method) for route, method in CLOSED]
    return dict(zip(CLOSED_NAMES, answers, strict=True))


@contextmanager
def undone() -> Iterator[None]:
    """Undo the block's changes at its end."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def test_there_are_routes() -> None:
    assert len(ROUTES) >= 10
    assert len(CLOSED) > len(BY_ROLE) > len(PUBLIC) > 0


def test_each_path_has_one_route() -> None:
    paths = [route.path for route in ROUTES]
    assert sorted(set(paths)) == sorted(paths)


@pytest.mark.parametrize("view", {route.view: None for route in ROUTES}, ids=lambda v: v.__name__)
def test_a_view_declares_access_for_each_of_its_actions(view: type[ApiView]) -> None:
    routed = {action for route in ROUTES if route.view is view for _, action in route.actions}
    assert set(view.access) == routed


@pytest.mark.parametrize("view", {route.view: None for route in ROUTES}, ids=lambda v: v.__name__)
def test_a_view_describes_only_its_own_actions_and_paths(view: type[PlatformViewSet]) -> None:
    tables = (view.errors, view.request_serializers, view.query_serializers, view.success_statuses)
    described = {action for table in tables for action in table}
    assert described <= set(view.access)
    placeholders = {name for route in ROUTES if route.view is view for name in route.placeholders}
    assert set(view.path_schemas) <= placeholders


def test_a_request_without_credentials_is_refused(db: None) -> None:
    assert outcomes(Caller()) == dict.fromkeys(CLOSED_NAMES, (401, "not_authenticated"))


@pytest.mark.parametrize(("route", "method"), PUBLIC, ids=ids)
def test_a_public_route_asks_for_no_credentials(db: None, route: Route, method: str) -> None:
    _, code = sent(Caller(), route, method)
    assert code != "not_authenticated"


def test_a_refresh_token_is_refused_on_every_route(alice: User) -> None:
    caller = Caller(signed_in(alice).refresh_token)
    assert outcomes(caller) == dict.fromkeys(CLOSED_NAMES, (401, "token_invalid"))


@pytest.mark.parametrize(("route", "method"), BY_ROLE, ids=ids)
def test_the_table_decides_for_each_role(home: Organization, route: Route, method: str) -> None:
    access = route.access_of(method)
    assert access.resource is not None
    assert access.action is not None
    for role in ROLES:
        with undone():
            user = member(home, "someone@example.com", role=role)
            status, code = sent(signed_in(user), route, method)
        if is_permitted([role], access.resource, access.action):
            assert code != "permission_denied", role
            assert status != 401, role
        else:
            assert (role, status, code) == (role, 403, "permission_denied")


@pytest.mark.parametrize(
    ("route", "method"), [each for each in EACH if each[0].path not in WITH_OWN_QUERIES], ids=ids
)
def test_a_query_with_a_name_that_is_not_declared_is_refused(
    alice: User, route: Route, method: str
) -> None:
    path = route.filled(dict.fromkeys(route.placeholders, NOBODYS))
    answer = signed_in(alice).call(method, f"{path}?mistyped=1")
    assert answer.status == 400, answer.body
    wrong = [(each["field"], each["code"]) for each in answer.body["errors"]]
    assert ("mistyped", "unknown") in wrong


@pytest.mark.parametrize("resource", TABLE)
def test_the_table_is_what_the_design_says(resource: str) -> None:
    row = {role: sorted(actions) for role, actions in TABLE[resource].items()}  # type: ignore[index]  # walked
    every = ["create", "delete", "read", "update"]
    is_data = resource in {"sql", "objects"}
    assert row == {
        "admin": every,
        "operator": every if is_data else ["read"],
        "reader": ["read"] if is_data else [],
    }
