"""The client: one object for a platform and a session."""

from datetime import date
from types import TracebackType
from typing import Any, Optional
from urllib.parse import urlsplit

import httpx

from zonal._async import browser, signin
from zonal._async.api_keys import AsyncApiKeys
from zonal._async.buckets import AsyncBuckets
from zonal._async.cache import AsyncAccessKeys, AsyncCache
from zonal._async.credentials import AsyncCredentials
from zonal._async.environments import AsyncEnvironments
from zonal._async.members import AsyncMembers
from zonal._async.signin import SecondFactor
from zonal._async.sql import AsyncSql
from zonal._async.transport import AsyncTransport, Call
from zonal.addresses import checked
from zonal.bodies import given
from zonal.browser import BrowserSignIn
from zonal.decoding import decode
from zonal.retries import Retries
from zonal.tokens import MemoryStore, TokenStore
from zonal.types import LoginAnswer, OrganizationUsage, Permissions, TokenPair, Whoami

# Longer than any statement may run.
TIMEOUT_S = 60.0


class AsyncClient:
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
        http: Optional[httpx.AsyncClient] = None,
    ) -> None:
        """Take a platform's URL and what authorizes requests.

        token: sent as it is, such as an API key. store: where tokens of a sign-in are kept; in
        memory without one. allow_http: send tokens in clear to other machines, too. http: an HTTP
        client of one's own; this one closes it.
        """
        self._transport = AsyncTransport(
            checked(base_url, allow_http=allow_http),
            AsyncCredentials(token, store or MemoryStore()),
            http=http or httpx.AsyncClient(timeout=httpx.Timeout(timeout_s, connect=10.0)),
            retries=retries or Retries(),
        )
        self.sql = AsyncSql(self._transport)
        self.environments = AsyncEnvironments(self._transport)
        self.members = AsyncMembers(self._transport)
        self.api_keys = AsyncApiKeys(self._transport)
        self.buckets = AsyncBuckets(self._transport)
        self.access_keys = AsyncAccessKeys(self._transport)
        self.cache = AsyncCache(self._transport)

    async def __aenter__(self) -> "AsyncClient":
        """Return the client."""
        return self

    async def __aexit__(
        self,
        kind: Optional[type[BaseException]],
        exc: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def sign_in(
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
        answer = await signin.sign_in(
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

    async def start_browser_sign_in(
        self, *, host: str, port: Optional[int] = None, environment: Optional[str] = None
    ) -> BrowserSignIn:
        """Begin a sign-in that the user allows in a browser, at ``request.page_url``.

        host: of this machine, as the page shows it: letters, digits, dots, dashes, underscores.
        port: of a listener on 127.0.0.1, which then gets
        ``/callback?state=REQUEST_ID&code=…``; without it the page shows the code.
        """
        return await browser.start(self._transport, host=host, port=port, environment=environment)

    async def finish_browser_sign_in(
        self,
        started: BrowserSignIn,
        code: str,
        *,
        second_factor: Optional[SecondFactor] = None,
        attempts: int = 1,
    ) -> LoginAnswer:
        """Sign in with the code of the page; later requests are the session's."""
        answer = await browser.finish(
            self._transport, started, code, second_factor=second_factor, attempts=attempts
        )
        self._keep(answer)
        return answer

    async def sign_out(self) -> None:
        """End the session."""

        async def end(refresh_token: str) -> None:
            body = {"refresh_token": refresh_token}
            await self._transport.call(Call("POST", "/v1/auth/logout", body, is_anonymous=True))

        await self._transport.credentials.spend(end)
        self._transport.credentials.keep(None)

    async def switch(self, environment: str) -> None:
        """Go on in another environment, with another session of the same sign-in."""

        async def exchange(refresh_token: str) -> TokenPair:
            body = {"refresh_token": refresh_token, "environment": environment}
            call = Call("POST", "/v1/auth/switch", body, is_anonymous=True)
            return decode(TokenPair, await self._transport.call(call))

        self._keep(await self._transport.credentials.spend(exchange))

    async def step_up(
        self, second_factor: SecondFactor, *, method: Optional[str] = None, attempts: int = 1
    ) -> None:
        """Prove the second factor again, for what is refused with ``step_up_required``."""
        await signin.prove(self._transport, second_factor, method=method, attempts=attempts)

    async def reauthenticate(self, password: str) -> None:
        """Prove the password again, for what is refused so where no second factor is active."""
        body = {"password": password}
        await self._transport.call(Call("POST", "/v1/auth/reauthenticate", body))

    async def whoami(self) -> Whoami:
        """Return who the token belongs to, and where."""
        return decode(Whoami, await self._transport.call(Call("GET", "/v1/whoami")))

    async def permissions(self) -> Permissions:
        """Return what the caller may do."""
        call = Call("GET", "/v1/permissions/effective")
        return decode(Permissions, await self._transport.call(call))

    async def usage(
        self, *, since: Optional[date] = None, until: Optional[date] = None
    ) -> OrganizationUsage:
        """Return what the organization used and what it cost, by day."""
        days = {name: day.isoformat() for name, day in given(since=since, until=until).items()}
        call = Call("GET", "/v1/usage", params=days)
        return decode(OrganizationUsage, await self._transport.call(call))

    async def request(
        self, method: str, path: str, *, body: Any = None, params: Optional[dict[str, Any]] = None
    ) -> Any:
        """Return the JSON of any operation of the API: ``request("GET", "/v1/audit")``."""
        # A full URL would carry the token to another host.
        if not path.startswith("/") or urlsplit(path).netloc:
            raise ValueError("A path of the API begins with one slash.")
        return await self._transport.call(Call(method.upper(), path, body, params=params))

    def _keep(self, answer: Any) -> None:
        self._transport.credentials.keep(
            TokenPair(
                access_token=answer.access_token,
                refresh_token=answer.refresh_token,
                access_expires_at=answer.access_expires_at,
                refresh_expires_at=answer.refresh_expires_at,
            )
        )
