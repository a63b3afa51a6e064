"""Every route enforces its declared access: route × method × role."""

import pytest

from accounts.models import User
from environments.models import Organization
from platform_site.lib.api import ApiView
from platform_site.lib.permissions import ROLES, TABLE, is_permitted
from tests.cast import Caller, member, signed_in
from tests.rules.routes import Route, api_routes

ROUTES = api_routes()
EACH = [(route, method) for route in ROUTES for method in route.methods]
NOBODYS = "00000000-0000-7000-8000-000000000000"


def ids(value: object) -> str:
    return value.path if isinstance(value, Route) else str(value)


def sent(caller: Caller, route: Route, method: str) -> tuple[int, str]:
    path = route.filled(dict.fromkeys(route.placeholders, NOBODYS))
    answer = caller.call(method, path, {} if method != "GET" else None)
    return answer.status, (answer.body or {}).get("code", "")


def test_there_are_routes() -> None:
    assert len(ROUTES) >= 10


def test_each_path_has_one_route() -> None:
    paths = [route.path for route in ROUTES]
    assert sorted(set(paths)) == sorted(paths)


@pytest.mark.parametrize("view", {route.view: None for route in ROUTES}, ids=lambda v: v.__name__)
def test_a_view_declares_access_for_each_of_its_actions(view: type[ApiView]) -> None:
    routed = {action for route in ROUTES if route.view is view for _, action in route.actions}
    assert set(view.access) == routed


@pytest.mark.parametrize(("route", "method"), EACH, ids=ids)
def test_a_request_without_credentials_is_refused(db: None, route: Route, method: str) -> None:
    status, code = sent(Caller(), route, method)
    if route.access_of(method).kind == "public":
        assert code != "not_authenticated"
    else:
        assert (status, code) == (401, "not_authenticated")


@pytest.mark.parametrize(("route", "method"), EACH, ids=ids)
def test_a_refresh_token_is_refused_on_every_route(alice: User, route: Route, method: str) -> None:
    caller = Caller(signed_in(alice).refresh_token)
    status, code = sent(caller, route, method)
    if route.access_of(method).kind != "public":
        assert (status, code) == (401, "token_invalid")


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize(("route", "method"), EACH, ids=ids)
def test_the_table_decides_for_each_role(
    home: Organization, route: Route, method: str, role: str
) -> None:
    access = route.access_of(method)
    if access.resource is None or access.action is None:
        return
    user = member(home, "someone@example.com", role=role)
    status, code = sent(signed_in(user), route, method)
    if is_permitted([role], access.resource, access.action):
        assert code != "permission_denied"
        assert status != 401
    else:
        assert (status, code) == (403, "permission_denied")


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
