"""Requests to the platform: authorized, repeated where that is safe, refused with typed errors."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Union

import httpx

from zonal import errors
from zonal._async.credentials import AsyncCredentials
from zonal._async.uploads import streamed
from zonal._async.waiting import sleep
from zonal.bodies import encoded, parsed
from zonal.decoding import decode
from zonal.files import Source, length_of
from zonal.retries import IDEMPOTENT, Retries
from zonal.types import TokenPair

JSON = "application/json"
# The first may find a pair that another process has stored, and that has expired, too.
RENEWALS = 2
RENEWED = frozenset({"token_expired", "token_superseded"})


@dataclass(frozen=True)
class Call:
    """A request.

    is_repeatable: True if a second one changes nothing. token: in place of the client's own.
    content: a body that is no JSON, with a Content-Type among the headers. url: a signed one of the
    object API, in place of the path; it gets no token. timeout_s: in place of the client's own.
    has_decimals: True to make numbers with a fraction Decimals. on_sent: called with the number of
    the content's bytes that were sent.
    """

    method: str
    path: str
    body: Any = None
    params: Optional[Mapping[str, Any]] = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_repeatable: bool = False
    token: Optional[str] = None
    is_anonymous: bool = False
    content: Optional[Source] = None
    url: str = ""
    timeout_s: Optional[float] = None
    has_decimals: bool = False
    on_sent: Optional[Callable[[int], None]] = None


class AsyncTransport:
    """The connections to one platform."""

    def __init__(
        self,
        base_url: str,
        credentials: AsyncCredentials,
        *,
        http: httpx.AsyncClient,
        retries: Retries,
    ) -> None:
        """Send through an HTTP client, which this one closes."""
        self._base = base_url.rstrip("/")
        self.credentials = credentials
        self._http = http
        self._retries = retries

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def call(self, call: Call) -> Any:
        """Return the answer's JSON, None if it has no body."""
        response = await self.send(call)
        if not response.content:
            return None
        try:
            return parsed(response.content, has_decimals=call.has_decimals)
        except ValueError as exc:
            raise errors.UnexpectedAnswerError(
                f"{self._base} answered {response.status_code} without JSON: is it the platform?"
            ) from exc

    async def send(self, call: Call, *, is_stream: bool = False) -> httpx.Response:
        """Return a successful response; with is_stream its body is yet to be read and closed."""
        attempt, renewals = 0, 0
        while True:
            token = call.token or self.credentials.token
            try:
                response = await self._http.send(
                    # The object API sends reads on to a node that has the object.
                    self._request(call, token),
                    stream=is_stream,
                    follow_redirects=bool(call.url),
                )
                if response.is_success:
                    return response
                await response.aread()
                await response.aclose()
            except httpx.TransportError as exc:
                pause = self._retries.pause_after_failure(
                    exc, attempt=attempt, is_repeatable=_is_repeatable(call)
                )
                if pause is None:
                    raise self._unreachable(exc) from exc
            except httpx.RequestError as exc:
                # A body that is not packed as its header says, or redirects without an end.
                raise errors.UnexpectedAnswerError(
                    f"{self._base} sent an answer that cannot be read ({exc}): is it the platform?"
                ) from exc
            else:
                problem = errors.problem_of(response)
                if renewals < RENEWALS and await self._renew(call, problem, token):
                    renewals += 1
                    continue
                pause = self._retries.pause_after_problem(
                    problem, attempt=attempt, is_repeatable=_is_repeatable(call)
                )
                if pause is None:
                    raise problem
            attempt += 1
            await sleep(pause)

    def _request(self, call: Call, token: Optional[str]) -> httpx.Request:
        headers = {"Accept": JSON, **call.headers}
        if token and not (call.is_anonymous or call.url):
            headers["Authorization"] = f"Bearer {token}"
        content: Union[bytes, AsyncIterator[bytes], None] = None
        if call.content is not None:
            headers["Content-Length"] = str(length_of(call.content))
            content = streamed(call.content, call.on_sent)
        elif call.body is not None:
            headers["Content-Type"] = JSON
            content = encoded(call.body)
        return self._http.build_request(
            call.method,
            call.url or self._base + call.path,
            params=call.params or None,
            headers=headers,
            content=content,
            timeout=httpx.USE_CLIENT_DEFAULT if call.timeout_s is None else call.timeout_s,
        )

    async def _renew(self, call: Call, problem: errors.ProblemError, token: Optional[str]) -> bool:
        """Return True if the request is to be sent again with a new token."""
        if call.token or call.is_anonymous or call.url or problem.code not in RENEWED:
            return False
        is_superseded = problem.code == "token_superseded"
        return await self.credentials.renew(token, self._refresh, is_superseded=is_superseded)

    async def _refresh(self, refresh_token: str) -> TokenPair:
        # Of two refreshes with one token within ten seconds both get the same answer.
        body = {"refresh_token": refresh_token}
        call = Call("POST", "/v1/auth/refresh", body, is_repeatable=True, is_anonymous=True)
        return decode(TokenPair, await self.call(call))

    def _unreachable(self, exc: httpx.TransportError) -> errors.ConnectionFailedError:
        said = str(exc) or type(exc).__name__
        return errors.ConnectionFailedError(f"{self._base} did not answer: {said}")


def _is_repeatable(call: Call) -> bool:
    return call.is_repeatable or call.method in IDEMPOTENT
