"""A page's path leads to it with and without the slash at its end; the API's paths are exact."""

import re
from urllib.parse import unquote_to_bytes, urljoin, urlsplit

import pytest
from django.test import Client

from console import urls
from tests.cast import HANDLER, Caller
from tests.rules.routes import api_routes
from tests.staff import staff_inside

CONSOLE = [path for page in urls.urlpatterns if (path := str(page.pattern)) != "console/"]
NOBODYS = "00000000-0000-7000-8000-000000000000"


@pytest.fixture
def visitor() -> Client:
    """Return a client without an account."""
    client = Client(raise_request_exception=False)
    client.handler = HANDLER
    return client


@pytest.fixture
def inside(db: None) -> Client:
    """Return the browser of a member of staff."""
    return staff_inside()


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("/admin", "/admin/"),
        ("/console", "/console/"),
        ("/inbox/", "/inbox"),
        ("/v1/docs/", "/v1/docs"),
        ("/v1/schema/", "/v1/schema"),
        *((f"/{path}/", f"/{path}") for path in CONSOLE),
    ],
)
def test_a_path_leads_to_the_page_that_it_means(
    visitor: Client, method: str, path: str, page: str
) -> None:
    response = visitor.generic(method, path)
    assert (response.status_code, response.headers.get("Location")) == (302, page)
    # A page may come or go with a setting, so no browser remembers where its path led.
    assert "Cache-Control" not in response.headers


def test_the_query_is_kept_as_it_was_sent(visitor: Client) -> None:
    query = "schema=public&table=a%2Fb&x=%0d%0aSet-Cookie:%20a=b&next=//evil.example/&y=%C3%A9"
    response = visitor.get(f"/console/tables/?{query}")
    assert response.headers.get("Location") == f"/console/tables?{query}"
    assert not response.cookies


@pytest.mark.django_db
def test_a_path_of_the_admin_leads_to_its_page_after_sign_in(inside: Client) -> None:
    for path in ("/admin/accounts/user", "/admin/login", "/admin/audit/auditevent"):
        response = inside.get(f"{path}?q=1")
        assert (response.status_code, response.headers.get("Location")) == (302, f"{path}/?q=1")
    # The last of the admin's patterns matches every path.
    assert inside.get("/admin/accounts/nothing").status_code == 404
    assert inside.get("/admin/accounts/nothing/").status_code == 404


@pytest.mark.django_db
def test_the_admin_shows_no_stranger_which_paths_it_has(visitor: Client) -> None:
    for path in ("/admin/accounts/user", "/admin/accounts/nothing"):
        location = visitor.get(path).headers["Location"]
        assert location == f"/admin/login/?next={path}"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"])
@pytest.mark.parametrize("path", ["/admin", "/console", "/console/sql/", "/v1/docs/", "/inbox/"])
def test_only_a_read_is_redirected(visitor: Client, method: str, path: str) -> None:
    response = visitor.generic(method, path, b"{}", content_type="application/json")
    assert response.status_code == 404
    assert "Location" not in response.headers


@pytest.mark.django_db
def test_no_path_of_the_api_with_a_slash_is_redirected() -> None:
    for route in api_routes():
        path = route.filled(dict.fromkeys(route.placeholders, NOBODYS)) + "/"
        for method in ("GET", "HEAD", "POST"):
            answer = Caller().call(method, path)
            assert answer.status == 404, path
            assert answer.headers["Content-Type"] == "application/problem+json", path


@pytest.mark.parametrize("path", ["/healthz/", "/readyz/", "/metrics/"])
def test_a_probe_of_a_wrong_path_is_refused(visitor: Client, path: str) -> None:
    """Load balancers take a redirect for health."""
    assert visitor.get(path).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "//evil.example/",
        "//evil.example",
        "///evil.example/",
        "/\\evil.example/",
        "/%5Cevil.example/",
        "/%2F%2Fevil.example/",
        "/%2fevil.example%2f",
        "//evil.example/console/sql/",
        "//evil.example/%2e%2e/admin",
        "/console//evil.example/",
        "/console/sql//",
        "/console/sql%2F%2F",
        "/console/%5Cevil.example/",
        "/console/..//evil.example/",
        "/admin//evil.example",
        "/admin/\\evil.example",
        "/admin/..//evil.example",
        "/admin/..%2F%2Fevil.example",
        "/admin%0d%0aSet-Cookie:a=b",
        "/admin/accounts/user/..%2f..%2f..%2f%2fevil.example",
        "/admin/accounts/user/x%0d%0aSet-Cookie:a=b/change",
        "/admin@evil.example",
        "/admin:80@evil.example/",
        "/adminx",
        "/consolex/",
    ],
)
def test_no_path_leads_to_another_server(visitor: Client, inside: Client, path: str) -> None:
    for client in (visitor, inside):
        # As a server passes it on: the client would take what follows two slashes for a host.
        response = client.get("/", PATH_INFO=unquote_to_bytes(path).decode("latin-1"))
        assert response.status_code in {302, 404}
        location = response.headers.get("Location", "")
        # A browser takes a backslash for a slash, and drops line breaks.
        assert not re.search(r"[\\\s]", location)
        assert urlsplit(urljoin("http://testserver/", location)).netloc == "testserver"
        assert "a" not in response.cookies


def test_an_encoded_slash_is_a_slash(visitor: Client) -> None:
    response = visitor.get("/console%2Fsql%2F")
    assert response.headers.get("Location") == "/console/sql"


def test_a_redirect_leads_to_a_page_and_not_to_another_redirect(visitor: Client) -> None:
    for path in ("/console", "/console/sql/", "/v1/docs/"):
        response = visitor.get(path, follow=True)
        assert response.status_code == 200
        assert len(response.redirect_chain) == 1
