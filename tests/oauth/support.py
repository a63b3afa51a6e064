"""An OAuth flow step by step: the browser, and the client that sent it."""

import json
import secrets
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import requests
from django.http import HttpResponse
from django.test import Client

from tests.cast import HANDLER, Answer, Caller
from tests.oauth.fake_providers.server import s256

APP = "https://app.example.com/done"


@dataclass
class Browser:
    """A cookie jar that opens our pages and the provider's."""

    cookies: dict[str, str] = field(default_factory=dict)

    def get(self, url: str) -> Answer:
        """Open one of our URLs, given with or without a host."""
        return self._send("GET", url)

    def post_form(self, url: str, fields: dict[str, str]) -> Answer:
        """Send a form to one of our URLs, as the provider's page does."""
        return self._send("POST", url, urlencode(fields), "application/x-www-form-urlencoded")

    def _send(self, method: str, url: str, data: str = "", kind: str = "text/plain") -> Answer:
        parts = urlsplit(url)
        path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        client = Client(raise_request_exception=False)
        client.handler = HANDLER
        send: Any = client.generic
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        response: HttpResponse = send(method, path, data, content_type=kind, HTTP_COOKIE=cookie)
        for name, morsel in response.cookies.items():
            self.cookies[name] = morsel.value
        is_json = "json" in response.get("Content-Type", "")
        body = json.loads(response.content) if is_json and response.content else None
        return Answer(response.status_code, body, response.headers, response)


@dataclass
class OAuthFlow:
    """One external sign-in or link of a client.

    It keeps what a client keeps: the PKCE verifier, and the ``state`` it expects back.
    """

    provider: str
    browser: Browser = field(default_factory=Browser)
    redirect_to: str = APP
    environment: str = ""
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    state: str = field(default_factory=lambda: secrets.token_urlsafe(8))

    @property
    def query(self) -> dict[str, str]:
        """Return the query of a start."""
        answers = {
            "redirect_to": self.redirect_to,
            "environment": self.environment,
            "state": self.state,
            "code_challenge": s256(self.verifier),
        }
        return {name: value for name, value in answers.items() if value}

    def start(self, **changed: str) -> Answer:
        """Open the start URL."""
        query = self.query | changed
        return self.browser.get(f"/v1/auth/oauth/{self.provider}/start?{urlencode(query)}")

    def at_provider(self, url: str) -> requests.Response:
        """Sign in at the provider; return its response."""
        return requests.get(url, allow_redirects=False, timeout=10)

    def back(self, sent: requests.Response) -> Answer:
        """Follow the provider's redirect, or send its form."""
        if sent.status_code == 302:
            return self.browser.get(sent.headers["Location"])
        action, fields = read_form(sent.text)
        return self.browser.post_form(action, fields)

    def round_trip(self) -> Answer:
        """Go to the provider and return: the redirect to the client."""
        started = self.start()
        assert started.status == 302, started.body
        return self.back(self.at_provider(started.headers["Location"]))

    def returned(self, answer: Answer) -> dict[str, str]:
        """Return the parameters that the client receives, after checking its state."""
        assert answer.status == 302, answer.body
        target, _, query = answer.headers["Location"].partition("?")
        assert target == self.redirect_to
        values = dict(parse_qsl(query))
        assert values.pop("state") == self.state
        return values

    def exchange(self, code: str, by: Caller | None = None, **changed: str) -> Answer:
        """Exchange the code, as the client does."""
        body = {"code": code, "code_verifier": self.verifier} | changed
        return (by or Caller()).post("/v1/auth/oauth/token", body)

    def code(self) -> str:
        """Go to the provider and return with a code."""
        values = self.returned(self.round_trip())
        assert set(values) == {"code"}, values
        return values["code"]

    def error(self) -> str:
        """Go to the provider and return with an error."""
        values = self.returned(self.round_trip())
        assert set(values) == {"error", "error_description"}, values
        return values["error"]

    def sign_in(self) -> Answer:
        """Run the whole flow."""
        return self.exchange(self.code())

    def link(self, by: Caller) -> Answer:
        """Link to the user of a session."""
        return self.exchange(self.link_code(by), by)

    def link_code(self, by: Caller) -> str:
        """Start a link and go to the provider; return the code."""
        begun = by.post(f"/v1/auth/oauth/{self.provider}/link", self.query)
        assert begun.status == 200, begun.body
        assert begun.body["status"] == "started"
        started = self.browser.get(begun.body["start_url"])
        assert started.status == 302, started.body
        return self.returned(self.back(self.at_provider(started.headers["Location"])))["code"]


class _Form(HTMLParser):
    """Reads the only form of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.action = ""
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record the form and its fields."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = given["action"]
        if tag == "input" and "name" in given:
            self.fields[given["name"]] = given["value"]


def read_form(html: str) -> tuple[str, dict[str, str]]:
    """Return a form's action and fields."""
    form = _Form()
    form.feed(html)
    return form.action, form.fields
