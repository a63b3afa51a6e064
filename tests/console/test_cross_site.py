"""Requests that another site makes a browser send with the console's cookies are refused."""

import pytest

from accounts.models import User
from environments.models import Environment
from tests.cast import PASSWORD, Answer, signed_in
from tests.console.support import BY_CONSOLE, Jar, cookie, signed_up

pytestmark = pytest.mark.django_db

CONSOLE = {"X_ZONAL_CONSOLE": "1"}
ELSEWHERE = {
    "cross-site": {"SEC_FETCH_SITE": "cross-site"},
    "a sibling domain": {"SEC_FETCH_SITE": "same-site"},
    "typed into the address bar": {"SEC_FETCH_SITE": "none"},
    "neither header": {},
    "another origin": {"ORIGIN": "https://evil.example"},
    "another port": {"ORIGIN": "http://testserver:8443"},
    "another scheme": {"ORIGIN": "https://testserver"},
    "a subdomain": {"ORIGIN": "http://a.testserver"},
    "a suffix": {"ORIGIN": "http://testserver.evil.example"},
    "a sandboxed frame": {"ORIGIN": "null"},
    "an empty origin": {"ORIGIN": ""},
    "headers that contradict": {"SEC_FETCH_SITE": "same-origin", "ORIGIN": "https://evil.example"},
    "headers that contradict, too": {
        "SEC_FETCH_SITE": "cross-site",
        "ORIGIN": "http://testserver",
    },
    "two in one": {"SEC_FETCH_SITE": "same-origin, cross-site"},
}


@pytest.mark.parametrize("headers", ELSEWHERE.values(), ids=ELSEWHERE)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_request_from_another_origin_is_refused(headers: dict[str, str], method: str) -> None:
    path, body = ("/v1/whoami", None) if method == "GET" else ("/v1/environments", {"id": "mine"})
    answer = signed_up().call(method, path, body, **CONSOLE, **headers)
    assert (answer.status, answer.code) == (403, "csrf_failed")
    assert not Environment.objects.filter(slug="mine").exists()


def test_an_unknown_host_name_is_refused() -> None:
    """DNS rebinding: another name for this host, which the browser reports as same-origin."""
    headers = {**BY_CONSOLE, "HOST": "evil.example", "ORIGIN": "http://evil.example"}
    assert signed_up().call("GET", "/v1/whoami", **headers).status == 400


@pytest.mark.parametrize("headers", ELSEWHERE.values(), ids=ELSEWHERE)
def test_another_site_can_neither_sign_in_nor_sign_out_a_user(headers: dict[str, str]) -> None:
    """Signing a victim in as the attacker (login CSRF), or out, is an attack, too."""
    jar = signed_up()
    body = {"email": "dora@example.com", "password": PASSWORD}
    for path, sent in (("/v1/auth/login", body), ("/v1/auth/logout", {}), ("/v1/auth/refresh", {})):
        answer = jar.call("POST", path, sent, **CONSOLE, **headers)
        assert (answer.status, answer.code) == (403, "csrf_failed")
        assert not answer.raw.cookies
    assert jar.page("GET", "/v1/whoami").status == 200


@pytest.mark.parametrize("value", ["", "0", "true", "1, 1"])
def test_cookies_without_the_header_authenticate_no_one(value: str) -> None:
    jar = signed_up()
    headers = {"SEC_FETCH_SITE": "same-origin", "ORIGIN": "http://testserver"}
    if value:
        headers["X_ZONAL_CONSOLE"] = value
    for method, path in (("GET", "/v1/whoami"), ("GET", "/v1/environments"), ("POST", "/v1/sql")):
        answer = jar.call(method, path, {"query": "SELECT 1"}, **headers)
        assert (answer.status, answer.code) == (401, "not_authenticated")


def test_a_form_of_another_site_does_nothing() -> None:
    """A form sends cookies (were they not SameSite) and text/plain, and can set no header."""
    jar = signed_up()
    answer = jar.call(
        "POST", "/v1/auth/logout", {}, SEC_FETCH_SITE="cross-site", ORIGIN="https://evil.example"
    )
    assert answer.status == 400  # the refresh token is missing: the cookie was not looked at
    assert jar.page("GET", "/v1/whoami").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"SEC_FETCH_SITE": "same-origin"},
        {"ORIGIN": "http://testserver"},
        {"SEC_FETCH_SITE": "same-origin", "ORIGIN": "http://testserver"},
    ],
)
def test_the_consoles_own_pages_get_in(headers: dict[str, str]) -> None:
    answer = signed_up().call("GET", "/v1/whoami", **CONSOLE, **headers)
    assert (answer.status, answer.body["email"]) == (200, "dora@example.com")


def test_a_bearer_token_takes_precedence_over_cookies(alice: User) -> None:
    jar, caller = signed_up(), signed_in(alice)
    answer = jar.call(
        "GET", "/v1/whoami", **BY_CONSOLE, AUTHORIZATION=f"Bearer {caller.access_token}"
    )
    assert answer.body["email"] == "alice@example.com"
    refused = jar.call("GET", "/v1/whoami", **BY_CONSOLE, AUTHORIZATION="Bearer nonsense")
    assert (refused.status, refused.code) == (401, "token_invalid")
    # And the refresh cookie is not spent on such a caller.
    answer = jar.call(
        "POST",
        "/v1/auth/refresh",
        {},
        **BY_CONSOLE,
        AUTHORIZATION=f"Bearer {caller.access_token}",
    )
    assert answer.status == 400
    assert not answer.raw.cookies


PLANTED = {
    "a no-break blank": "\u00a0",
    "an en quad": "\u2000",
    "a next-line": "\u0085",
    "an ideographic blank": "\u3000",
}


@pytest.mark.parametrize("blank", PLANTED.values(), ids=PLANTED)
def test_a_planted_cookie_is_ignored(blank: str) -> None:
    """A subdomain may set a cookie that begins with a blank; Django would strip the blank."""
    stolen = signed_up("mallory@example.com")
    access = stolen.cookies[cookie("access")]
    # As WSGI hands bytes on: each one a character of Latin-1.
    name = f"{blank}{cookie('access')}".encode().decode("latin-1")
    answer = Jar({name: access}).page("GET", "/v1/whoami")
    assert (answer.status, answer.code) == (401, "not_authenticated")


@pytest.mark.parametrize("name", ["__host-zonal-access", "zonal-access", "__Host-zonal-access2"])
def test_a_cookie_of_a_similar_name_is_ignored(name: str) -> None:
    access = signed_up().cookies[cookie("access")]
    assert Jar({name: access}).page("GET", "/v1/whoami").status == 401


def test_two_different_cookies_of_one_name_are_ignored() -> None:
    mine, other = signed_up(), signed_up("mallory@example.com")
    both = "; ".join(f"{cookie('access')}={jar.cookies[cookie('access')]}" for jar in (mine, other))
    answer: Answer = Jar().call("GET", "/v1/whoami", **BY_CONSOLE, COOKIE=both)
    assert (answer.status, answer.code) == (401, "not_authenticated")


def test_each_kind_of_token_works_in_its_own_cookie_only() -> None:
    """A cookie with another kind's token is refused as the API refuses it."""
    jar = signed_up()
    swapped = Jar({cookie("access"): jar.cookies[cookie("refresh")]})
    assert swapped.page("GET", "/v1/whoami").code == "token_invalid"
    swapped = Jar({cookie("refresh"): jar.cookies[cookie("access")]})
    assert swapped.page("POST", "/v1/auth/refresh", {}).code == "token_invalid"
    assert (
        Jar({cookie("device"): jar.cookies[cookie("access")]}).page("GET", "/v1/whoami").code
        == "not_authenticated"
    )
