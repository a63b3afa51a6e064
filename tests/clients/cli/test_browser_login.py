"""`zonal login` in a browser, which this module stands in for."""

import io
import sys
import webbrowser
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

import zonal
from tests import cast
from tests.clients.cli.conftest import Outcome, Run
from tests.clients.conftest import Platform
from tests.clients.front import Front
from tests.waiting import LIMIT_S
from zonal.cli import asking, browser
from zonal.cli.main import main

PATH = "/v1/auth/terminal"
Visit = Callable[[str], None]


class Terminal(io.StringIO):
    """A standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def at_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Run:
    """Return the command at a terminal with a graphical desktop."""
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    monkeypatch.setattr(sys, "stdin", Terminal())

    def call(*arguments: str, stdin: str = "") -> Outcome:
        capfdbinary.readouterr()
        try:
            status = main(arguments)
        except SystemExit as exc:
            status = int(str(exc.code))
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return Outcome(status, out.decode(), err.decode())

    return call


def request_of(page: str) -> str:
    """Return the request that a page's address names."""
    return parse_qs(urlsplit(page).fragment)["request"][0]


def decider(platform: Platform, user: cast.Caller) -> Callable[[str, str], Any]:
    """Return a function that allows or denies over HTTP: its thread needs no database."""

    def decide(request: str, verb: str) -> Any:
        with zonal.Client(platform.url, token=user.access_token) as client:
            return client.request("POST", f"{PATH}/{request}/{verb}")

    return decide


def browse(monkeypatch: pytest.MonkeyPatch, visit: Visit) -> list[Thread]:
    """Let a function see the page that the command opens, beside the command."""
    visits: list[Thread] = []

    def open_page(page: str) -> bool:
        visits.append(Thread(target=visit, args=(page,)))
        visits[-1].start()
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    return visits


def callback(port: int, fields: dict[str, str], *, host: str = "") -> int:
    """Send what a browser is sent to; return the status."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)) as connection:
        headers = {"Host": host} if host else {}
        connection.request("GET", f"/callback?{urlencode(fields)}", headers=headers)
        return connection.getresponse().status


def test_a_login_is_allowed_in_the_browser(
    at_terminal: Run, front: Front, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = cast.signed_in(platform.alice)
    statuses = []
    decide = decider(platform, alice)

    def visit(page: str) -> None:
        request = request_of(page)
        allowed = decide(request, "allow")
        port, code = allowed["port"], allowed["code"]
        # Other sites and programs know neither the state nor the listener's name.
        statuses.append(callback(port, {"state": "guessed", "code": "other"}))
        statuses.append(callback(port, {"code": code}))
        statuses.append(callback(port, {"state": request, "code": code}, host="evil.example.com"))
        statuses.append(callback(port, {"state": request, "code": code}))

    visits = browse(monkeypatch, visit)
    signed_in = at_terminal("login", "--url", front.url)
    visits[0].join()
    assert signed_in.status == 0, signed_in.err
    assert statuses == [404, 404, 404, 200]
    assert "Signed in to" in signed_in.err
    assert "alice@example.com" in at_terminal("whoami").out
    listed = alice.get("/v1/auth/sessions").body["results"]
    assert any(each["agent"].startswith("zonal/") for each in listed)


def test_a_denied_login_keeps_nothing(
    at_terminal: Run, front: Front, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = decider(platform, cast.signed_in(platform.alice))

    def visit(page: str) -> None:
        request = request_of(page)
        port = decide(request, "deny")["port"]
        callback(port, {"state": request, "error": "denied"})

    visits = browse(monkeypatch, visit)
    denied = at_terminal("login", "--url", front.url)
    visits[0].join()
    assert (denied.status, "denied in the browser" in denied.err) == (1, True)
    assert at_terminal("whoami", "--url", front.url).status == 4


def test_a_login_without_a_browser_asks_for_the_code(
    at_terminal: Run, front: Front, platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = cast.signed_in(platform.alice)
    said: list[str] = []
    monkeypatch.setattr(browser, "say", said.append)

    def code_of_the_page(_prompt: str) -> str:
        page = said[0].split()[-1]
        return str(alice.post(f"{PATH}/{request_of(page)}/allow").body["code"])

    monkeypatch.setattr(asking, "secret", code_of_the_page)
    signed_in = at_terminal("login", "--no-browser", "--environment", "sandbox", "--url", front.url)
    assert signed_in.status == 0, signed_in.err
    assert "environment sandbox" in signed_in.err
    # The code that the page shows is in the terminal, too.
    assert any("It must show the code" in each for each in said)


def test_a_mistyped_code_is_refused(
    at_terminal: Run, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "secret", lambda _: "mistyped")
    refused = at_terminal("login", "--no-browser", "--url", front.url)
    assert (refused.status, "terminal_sign_in_gone" in refused.err) == (1, True)


def test_nobody_answers_in_the_browser(
    at_terminal: Run, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser, "WAIT_S", 0.0)
    browse(monkeypatch, lambda _: None)
    over = at_terminal("login", "--url", front.url)
    assert (over.status, "Nobody allowed it" in over.err) == (2, True)


def test_a_program_has_no_browser(run: Run, front: Front) -> None:
    refused = run("login", "--url", front.url)
    assert (refused.status, "--token-stdin" in refused.err) == (2, True)
    assert front.seen == []


@pytest.mark.parametrize("name", ["", "alice's laptop", "日本", "h" * 300])
def test_any_machine_has_a_name_for_the_page(
    monkeypatch: pytest.MonkeyPatch, platform: Platform, name: str
) -> None:
    monkeypatch.setattr("platform.node", lambda: name)
    body = {"code_challenge": "E" * 43, "host": browser.host_name()}
    assert cast.Caller().post(PATH, body).status == 201
