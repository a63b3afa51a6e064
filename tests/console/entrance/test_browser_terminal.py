"""In a browser: a program at a terminal is allowed, or denied, to sign in."""

import re
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Session, TerminalSignIn
from tests.cast import Answer, Caller
from tests.console.browser import Visitor
from tests.console.journeys import EMAIL, PASSWORD, add_account, next_code, sign_up, with_app
from tests.sign_in_methods.terminal import VERIFIER, start

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
]


@pytest.fixture
def listener() -> Iterator[tuple[int, list[str]]]:
    """Yield the port of a program's listener, and what browsers asked it for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.startswith("/callback"):
                asked.append(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>zonal</title><p>Go on at the terminal.")

        def log_message(self, *_arguments: Any) -> None:
            """Print nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_port, asked
        server.shutdown()
        thread.join()


def link(begun: Answer) -> str:
    """Return the path of a request's page."""
    return f"/console/terminal#request={begun.body['request_id']}"


def test_a_program_on_this_machine_is_allowed(
    visitor: Visitor,
    listener: tuple[int, list[str]],
    picture: Callable[[Page, str], None],
) -> None:
    port, asked = listener
    sign_up(visitor)
    begun = start(port=port)
    visitor.go(link(begun))
    visitor.sees(begun.body["matching_code"])
    visitor.sees("laptop")
    assert "#" not in visitor.page.url
    picture(visitor.page, "terminal")
    visitor.press("Allow")
    visitor.page.wait_for_url(re.compile(rf"^http://127\.0\.0\.1:{port}/callback"))
    code = re.search(r"code=([\w-]+)", asked[0])
    assert code is not None
    assert f"state={begun.body['request_id']}" in asked[0]
    body = {"code": code[1], "code_verifier": VERIFIER}
    answer = Caller().post("/v1/auth/terminal/token", body)
    assert Caller(answer.body["access_token"]).get("/v1/whoami").body["email"] == EMAIL


def test_a_program_elsewhere_gets_its_code_by_hand(visitor: Visitor) -> None:
    sign_up(visitor)
    begun = start()
    TerminalSignIn.objects.update(address="192.0.2.7")
    visitor.go(link(begun))
    visitor.sees("It asks from another network address")
    visitor.press("Allow")
    visitor.sees("Paste this code into your terminal")
    code = visitor.page.locator("#terminal-code").text_content() or ""
    body = {"code": code, "code_verifier": VERIFIER}
    assert Caller().post("/v1/auth/terminal/token", body).status == 200


def test_a_program_is_denied(visitor: Visitor, listener: tuple[int, list[str]]) -> None:
    port, asked = listener
    sign_up(visitor)
    sessions = Session.objects.count()
    visitor.go(link(start(port=port)))
    visitor.press("Deny")
    visitor.page.wait_for_url(re.compile(rf"^http://127\.0\.0\.1:{port}/callback"))
    assert "error=denied" in asked[0]
    assert (Session.objects.count(), TerminalSignIn.objects.count()) == (sessions, 0)
    visitor.go("/console/terminal")
    visitor.sees("Nothing waits to be allowed.")


def test_who_is_signed_out_signs_in_first_and_shows_the_factor(visitor: Visitor) -> None:
    add_account()
    seed = with_app().seed
    begun = start()
    visitor.page.goto(visitor.base + link(begun))
    expect(visitor.page.get_by_role("heading", name="Sign in")).to_be_visible()
    visitor.settle()
    visitor.fill("E-mail", EMAIL)
    visitor.fill("Password", PASSWORD)
    visitor.press("Sign in")
    visitor.fill("Code", next_code(seed))
    visitor.press("Verify")
    visitor.sees(begun.body["matching_code"])
    visitor.press("Allow")
    visitor.sees("Paste this code into your terminal")


def test_a_request_that_is_over_says_so(visitor: Visitor) -> None:
    sign_up(visitor)
    begun = start()
    TerminalSignIn.objects.all().delete()
    visitor.go(link(begun))
    visitor.sees("This sign-in is over. Start it again at the terminal.")
