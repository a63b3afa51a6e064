"""The client: one object for a platform and a session."""

from datetime import date
from types import TracebackType
from typing import Any, Optional
from urllib.parse import urlsplit

import httpx

from zonal._sync import browser, signin
from zonal._sync.api_keys import ApiKeys
from zonal._sync.buckets import Buckets
from zonal._sync.cache import AccessKeys, Cache
from zonal._sync.credentials import Credentials
from zonal._sync.environments import Environments
from zonal._sync.members import Members
from zonal._sync.signin import SecondFactor
from zonal._sync.sql import Sql
from zonal._sync.transport import Call, Transport
from zonal.addresses import checked
from zonal.bodies import given
from zonal.browser import BrowserSignIn
from zonal.decoding import decode
from zonal.retries import Retries
from zonal.tokens import MemoryStore, TokenStore
from zonal.types import LoginAnswer, OrganizationUsage, Permissions, TokenPair, Whoami

# Longer than any statement may run.
TIMEOUT_S = 60.0


class Client:
    """A platform, as one user or machine sees it.

    Use it as a context manager, or close it. Its resources: ``sql``, ``environments``, ``members``,
    ``api_keys``, ``buckets``, ``access_keys``, ``cache``.
    """

    def __init__(
        self,
        base_url: str,
        *,
        token: Optional[str] = None,
        store: Optional[TokenStore] = None,
        retries: Optional[Retries] = None,
        timeout_s: float = TIMEOUT_S,
        allow_http: bool = False,
        http: Optional[httpx.Client] = None,
    ) -> None:
        """Take a platform's URL and what authorizes requests.

        token: sent as it is, such as an API key. store: where tokens of a sign-in are kept; in
        memory without one. allow_http: send tokens in clear to other machines, too. http: an HTTP
        client of one's own; this one closes it.
        """
        self._transport = Transport(
            checked(base_url, allow_http=allow_http),
            Credentials(token, store or MemoryStore()),
            http=http or httpx.Client(timeout=httpx.Timeout(timeout_s, connect=10.0)),
            retries=retries or Retries(),
        )
        self.sql = Sql(self._transport)
        self.environments = Environments(self._transport)
        self.members = Members(self._transport)
        self.api_keys = ApiKeys(self._transport)
        self.buckets = Buckets(self._transport)
        self.access_keys = AccessKeys(self._transport)
        self.cache = Cache(self._transport)

    def __enter__(self) -> "Client":
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        exc: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    def sign_in(
        self,
        email: str,
        password: str,
        *,
        environment: Optional[str] = None,
        second_factor: Optional[SecondFactor] = None,
        method: Optional[str] = None,
        attempts: int = 1,
    ) -> LoginAnswer:
        """Sign in; later requests are the session's.

        environment: the one used last, without it. second_factor: called with the challenge if the
        account has a second factor, returns the code; method: such as ``totp``, else the user's
        default. attempts: how often it is asked after wrong codes.
        """
        answer = signin.sign_in(
            self._transport,
            email,
            password,
            environment=environment,
            second_factor=second_factor,
            method=method,
            attempts=attempts,
        )
        self._keep(answer)
        return answer

    def start_browser_sign_in(
        self, *, host: str, port: Optional[int] = None, environment: Optional[str] = None
    ) -> BrowserSignIn:
        """Begin a sign-in that the user allows in a browser, at ``request.page_url``.

        host: of this machine, as the page shows it: letters, digits, dots, dashes, underscores.
        port: of a listener on 127.0.0.1, which then gets
        ``/callback?state=REQUEST_ID&code=…``; without it the page shows the code.
        """
        return browser.start(self._transport, host=host, port=port, environment=environment)

    def finish_browser_sign_in(
        self,
        started: BrowserSignIn,
        code: str,
        *,
        second_factor: Optional[SecondFactor] = None,
        attempts: int = 1,
    ) -> LoginAnswer:
        """Sign in with the code of the page; later requests are the session's."""
        answer = browser.finish(
            self._transport, started, code, second_factor=second_factor, attempts=attempts
        )
        self._keep(answer)
        return answer

    def sign_out(self) -> None:
        """End the session."""

        def end(refresh_token: str) -> None:
            body = {"refresh_token": refresh_token}
            self._transport.call(Call("POST", "/v1/auth/logout", body, is_anonymous=True))

        self._transport.credentials.spend(end)
        self._transport.credentials.keep(None)

    def switch(self, environment: str) -> None:
        """Go on in another environment, with another session of the same sign-in."""

        def exchange(refresh_token: str) -> TokenPair:
            body = {"refresh_token": refresh_token, "environment": environment}
            call = Call("POST", "/v1/auth/switch", body, is_anonymous=True)
            return decode(TokenPair, self._transport.call(call))

        self._keep(self._transport.credentials.spend(exchange))

    def step_up(
        self, second_factor: SecondFactor, *, method: Optional[str] = None, attempts: int = 1
    ) -> None:
        """Prove the second factor again, for what is refused with ``step_up_required``."""
        signin.prove(self._transport, second_factor, method=method, attempts=attempts)

    def reauthenticate(self, password: str) -> None:
        """Prove the password again, for what is refused so where no second factor is active."""
        body = {"password": password}
        self._transport.call(Call("POST", "/v1/auth/reauthenticate", body))

    def whoami(self) -> Whoami:
        """Return who the token belongs to, and where."""
        return decode(Whoami, self._transport.call(Call("GET", "/v1/whoami")))

    def permissions(self) -> Permissions:
        """Return what the caller may do."""
        call = Call("GET", "/v1/permissions/effective")
        return decode(Permissions, self._transport.call(call))

    def usage(
        self, *, since: Optional[date] = None, until: Optional[date] = None
    ) -> OrganizationUsage:
        """Return what the organization used and what it cost, by day."""
        days = {name: day.isoformat() for name, day in given(since=since, until=until).items()}
        call = Call("GET", "/v1/usage", params=days)
        return decode(OrganizationUsage, self._transport.call(call))

    def request(
        self, method: str, path: str, *, body: Any = None, params: Optional[dict[str, Any]] = None
    ) -> Any:
        """Return the JSON of any operation of the API: ``request("GET", "/v1/audit")``."""
        # A full URL would carry the token to another host.
        if not path.startswith("/") or urlsplit(path).netloc:
            raise ValueError("A path of the API begins with one slash.")
        return self._transport.call(Call(method.upper(), path, body, params=params))

    def _keep(self, answer: Any) -> None:
        self._transport.credentials.keep(
            TokenPair(
                access_token=answer.access_token,
                refresh_token=answer.refresh_token,
                access_expires_at=answer.access_expires_at,
                refresh_expires_at=answer.refresh_expires_at,
            )
        )
