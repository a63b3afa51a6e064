"""A browser's part of the console's contract: its cookie jar and the headers it adds."""

from dataclasses import dataclass, field
from http.cookies import Morsel

from tests.cast import PASSWORD, Answer, Caller

BY_CONSOLE = {"X_ZONAL_CONSOLE": "1", "SEC_FETCH_SITE": "same-origin"}
TOKENS = ("access_token", "refresh_token", "mfa_token", "device_token", "reset_token")


def cookie(kind: str) -> str:
    """Return a cookie's name."""
    return f"__Host-zonal-{kind}"


@dataclass
class Jar:
    """The cookies that a browser stores for the console."""

    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def header(self) -> str:
        """Return the Cookie header."""
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def call(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        """Send a request with the cookies only; store the cookies that the response sets."""
        sent = {"COOKIE": self.header, **headers} if self.cookies else headers
        answer = Caller().call(method, path, body, **sent)
        for name, morsel in set_by(answer).items():
            if morsel["max-age"] in {0, "0"}:
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
        return answer

    def page(self, method: str, path: str, body: object = None) -> Answer:
        """Send a request as a page of the console does."""
        return self.call(method, path, body, **BY_CONSOLE)


def set_by(answer: Answer) -> dict[str, "Morsel[str]"]:
    """Return the cookies an answer sets."""
    return dict(answer.raw.cookies.items())


def signed_up(email: str = "dora@example.com") -> Jar:
    """Return the browser of someone who has just signed up on the page."""
    jar = Jar()
    answer = jar.page("POST", "/v1/auth/signup", {"email": email, "password": PASSWORD})
    assert answer.status == 201, answer.body
    return jar
