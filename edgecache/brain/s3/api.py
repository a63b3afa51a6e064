"""The object API on port 9000: S3, and plain HTTP for public buckets.

A request is queued before it is authenticated, by a share key from the unauthenticated claims in
its head and the client's network. A client that claims another organization's key or bucket thus
takes turns from that organization's queue, but not from its clients in other networks.
"""

import random
import re
from datetime import UTC, datetime
from typing import Final, Protocol
from urllib.parse import unquote

import orjson
import structlog
from django.conf import settings

from common import tracing
from edgecache.brain.access.access_keys import AccessKeys
from edgecache.brain.access.platform_keys import is_platform_key
from edgecache.brain.access.signed_links import has_link
from edgecache.brain.aws import requests, xml
from edgecache.brain.aws.errors import S3Error, from_brain_error
from edgecache.brain.core import values
from edgecache.brain.core.errors import BrainError, DatabaseUnavailable, OriginError
from edgecache.brain.core.share_key import use_share_of_organization, use_share_of_unknown_client
from edgecache.brain.directory.hosts import Hosts
from edgecache.brain.directory.versions import Directory
from edgecache.brain.s3.access_log_lines import line_of
from edgecache.brain.s3.authentication import authenticate
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.cors import requests as cors_requests
from edgecache.brain.s3.cors.requests import CorsRules
from edgecache.brain.s3.dependencies import S3Dependencies
from edgecache.brain.s3.error_details import described
from edgecache.brain.s3.objects.conditions import NotModified
from edgecache.brain.s3.objects.post import is_form, signature_version, with_form
from edgecache.brain.s3.request_log import LogEntry, RequestLog
from edgecache.brain.s3.router import operation_of
from edgecache.http.addresses import network_of
from edgecache.http.exchange import ClientGone, Exchange
from edgecache.http.response_head import HeaderPairs
from edgecache.http.scope import HttpScope, TrustedProxies
from edgecache.runtime.fair_shares import ShareKey

log = structlog.get_logger(__name__)

CDN_PREFIX: Final = "/p/"
# For balancers. No bucket has a name of one character.
READY_PATH: Final = "/-/readyz"

REQUEST_ID_BITS: Final = 64
RESOURCE_CHARS: Final = 2048
SLOW_DOWN_S: Final = "1"
PUBLIC_NAME_CHARS: Final = 32
# Anyone may open a platform's link, so a stored page must not run on this host.
HARMLESS: Final = (
    ("content-security-policy", "sandbox"),
    ("x-content-type-options", "nosniff"),
)
# The access key in all signature versions, in the Authorization header or in the query.
_CLAIMED_KEY: Final = re.compile(r"(?:Credential|AWSAccessKeyId)=([A-Za-z0-9]{1,32})(?:[/&%]|$)")


class Cdn(Protocol):
    """Serves plain HTTP. bucket_id: set if the request's host belongs to a bucket."""

    async def __call__(
        self, scope: HttpScope, exchange: Exchange, bucket_id: int | None = None
    ) -> None: ...


class ObjectApi:
    """Serves requests; each gets a line in the log, without its secrets.

    share_keys: the queue keys of requests.
    """

    def __init__(self, dependencies: S3Dependencies, cdn: Cdn) -> None:
        """cdn: serves ``/p/…`` and the hosts of buckets, which are not S3."""
        self._dependencies = dependencies
        self._keys = AccessKeys(
            dependencies.database, dependencies.coherence, dependencies.platform_keys
        )
        self._cors = CorsRules(dependencies.database, dependencies.directory, self._keys)
        self._cdn = cdn
        self.share_keys = ClaimedShareKeys(
            self._keys, dependencies.directory, dependencies.hosts, dependencies.proxies
        )
        self._log = RequestLog(settings.LOG_FORMAT, settings.LOG_LEVEL)

    async def __call__(self, scope: HttpScope, exchange: Exchange) -> None:
        """Serve one request; errors are sent as S3's XML."""
        if scope.raw_path == READY_PATH and await self._is_ready_path(scope):
            await self._say_if_ready(scope, exchange)
            return
        # An id is not a secret, so it needs no system call.
        request_id = f"{random.getrandbits(REQUEST_ID_BITS):016X}"
        entry = LogEntry(request_id)
        with tracing.root("object request") as span:
            await self._answer(scope, exchange, entry)
            if span is not None:
                span.update_name(f"object {entry.operation or 'request'}")
                span.set_attribute("http.response.status_code", exchange.status)
                span.set_attribute("zonal.request_id", request_id)

    async def _is_ready_path(self, scope: HttpScope) -> bool:
        """True if no tenant owns the path: at a bucket's own host it is a key.

        True without the database, too, as a bucket's host cannot be served then.
        """
        domains, hosts = self._dependencies.settings.s3_domains, self._dependencies.hosts
        if scope.method not in {"GET", "HEAD"} or requests.bucket_of_host(scope.authority, domains):
            return False
        if not hosts.may_name_bucket(scope.authority):
            return True
        if hosts.known_bucket_id(scope.authority) is not None:
            return False
        try:
            # Known to be lost after a second at most; a look-up waits for longer.
            is_lost = await self._dependencies.readiness.missing() == "database"
            return is_lost or await hosts.bucket_id(scope.authority) is None
        except DatabaseUnavailable:
            return True

    async def _say_if_ready(self, scope: HttpScope, exchange: Exchange) -> None:
        missing = await self._dependencies.readiness.missing()
        status = {"status": "unavailable", "missing": missing} if missing else {"status": "ok"}
        headers = [("content-type", "application/json"), ("cache-control", "no-store")]
        if missing:
            headers.append(("retry-after", SLOW_DOWN_S))
        body = b"" if scope.method == "HEAD" else orjson.dumps(status)
        exchange.response_bytes(503 if missing else 200, headers, body)

    async def _answer(self, scope: HttpScope, exchange: Exchange, entry: LogEntry) -> None:
        request_id = entry.request_id
        try:
            await self._serve(scope, exchange, entry)
        except ClientGone:
            entry.error = "ClientGone"
            raise
        except Exception as exc:
            if not isinstance(exc, S3Error | BrainError):
                log.exception("object_request_failed", request_id=request_id)
            error = _as_s3(exc)
            entry.error = error.code
            if isinstance(exc, BrainError):
                exchange.cause = exc.cause
            if exchange.is_answered:
                exchange.cut()
            else:
                _send_error(exchange, error, scope, request_id)
        finally:
            if self._log.is_on:
                self._log.write(entry.fields(scope, exchange))
            if entry.logged is not None:
                line = line_of(entry.logged, entry, scope, exchange, now=datetime.now(UTC))
                self._dependencies.access_logs.add(entry.logged, line)

    async def _serve(self, scope: HttpScope, exchange: Exchange, entry: LogEntry) -> None:
        dependencies = self._dependencies
        entry.client = dependencies.proxies.client_of(scope)
        use_share_of_unknown_client(entry.client)
        may_be_cdn = self._is_cdn_path(scope) or dependencies.hosts.may_name_bucket(scope.authority)
        if may_be_cdn and await self._served_by_cdn(scope, exchange, entry):
            return
        request = requests.parse(
            scope, dependencies.settings.s3_domains, entry.request_id, client=entry.client
        )
        entry.bucket, entry.key = request.bucket, request.key
        if scope.method == "POST" and is_form(request):
            request = await self._with_form(request, scope, exchange)
            entry.key = request.key
        if scope.method == "OPTIONS":
            entry.operation = "Preflight"
            _send(exchange, await self._preflight(scope, request), entry.request_id)
            return
        if cors_requests.ORIGIN in scope.headers:
            # Before the signature is checked, because scripts must be able to read errors.
            rules = await self._cors.of_request(request)
            exchange.added = cors_requests.headers_of(rules, scope.method, scope.headers)
        context = await self._authenticated(request, exchange, entry)
        try:
            entry.operation, operation = operation_of(context.request)
            response = await operation(context)
        except NotModified as not_modified:
            response = S3Response(304, not_modified.headers)
        except BrainError as exc:
            if isinstance(exc, OriginError):
                context.note_failure(exc)
            raise described(exc, request) from exc
        finally:
            context.close()
            entry.is_hit = context.is_hit
            entry.logged = context.bucket_of_log()
        # Without one the operation has sent the response itself.
        if response is not None:
            _send(exchange, response, entry.request_id)

    async def _authenticated(
        self, request: requests.S3Request, exchange: Exchange, entry: LogEntry
    ) -> RequestContext:
        identity = await authenticate(request, self._keys)
        if identity is not None:
            entry.access_key = identity.access_key
            if request.form is not None:
                entry.form_signature = signature_version(request.form)
            if is_platform_key(identity.access_key):
                exchange.added = [*exchange.added, *HARMLESS]
            use_share_of_organization(identity.tenant.organization_id)
            # As authentication does: an empty header counts as absent.
            if not request.header("authorization"):
                request = requests.with_query_headers(request)
        return RequestContext(self._dependencies, request, exchange, identity)

    async def _with_form(
        self, request: requests.S3Request, scope: HttpScope, exchange: Exchange
    ) -> requests.S3Request:
        """Read a form up to its file. Raises S3Error, which a script may read as its preflight."""
        try:
            return await with_form(request, exchange)
        except S3Error:
            if cors_requests.ORIGIN in scope.headers:
                rules = await self._cors.of_preflight(request)
                exchange.added = cors_requests.headers_of(rules, scope.method, scope.headers)
            raise

    async def _preflight(self, scope: HttpScope, request: requests.S3Request) -> S3Response:
        cors_requests.check_preflight(scope.headers)
        rules = await self._cors.of_preflight(request)
        return cors_requests.preflight(rules, scope.headers)

    def _is_cdn_path(self, scope: HttpScope) -> bool:
        """True if the path names a public bucket.

        In virtual-host style it is a key: the host is one bucket's, and so is the web origin.
        """
        return scope.raw_path.startswith(CDN_PREFIX) and not requests.bucket_of_host(
            scope.authority, self._dependencies.settings.s3_domains
        )

    async def _served_by_cdn(self, scope: HttpScope, exchange: Exchange, entry: LogEntry) -> bool:
        """Serve a request that is plain HTTP: to a bucket's host, or below ``/p/``.

        Raises DatabaseUnavailable.
        """
        bucket_id = await self._dependencies.hosts.bucket_id(scope.authority)
        if bucket_id is not None:
            entry.bucket, entry.key = values.host_name(scope.authority), scope.path[1:]
        elif self._is_cdn_path(scope):
            public_name, _, entry.key = scope.path.removeprefix(CDN_PREFIX).partition("/")
            entry.bucket = public_name[:PUBLIC_NAME_CHARS]
        else:
            return False
        entry.operation, entry.request_id = "CDN", ""
        try:
            if cors_requests.ORIGIN not in scope.headers or not await self._answers_preflight(
                scope, exchange, bucket_id
            ):
                await self._cdn(scope, exchange, bucket_id)
        finally:
            name = entry.bucket if bucket_id is None else bucket_id
            bucket = self._dependencies.directory.known_bucket(name)
            if bucket is not None and bucket.log_bucket:
                entry.logged = bucket
        return True

    async def _answers_preflight(
        self, scope: HttpScope, exchange: Exchange, bucket_id: int | None
    ) -> bool:
        """Apply a bucket's CORS rules, if it has any; True if it answered a preflight.

        Raises S3Error AccessForbidden.
        """
        directory = self._dependencies.directory
        if bucket_id is None:
            public_name = scope.raw_path.removeprefix(CDN_PREFIX).partition("/")[0]
            bucket = await directory.bucket_by_public_name(public_name)
        else:
            bucket = await directory.bucket_by_id(bucket_id)
        # Before a link is checked, as of a signed request: scripts must be able to read errors.
        is_open = bucket is not None and (bucket.is_public or has_link(scope.query_string))
        rules = await self._cors.of_bucket(bucket) if bucket is not None and is_open else ()
        if not rules:
            return False
        if scope.method != "OPTIONS":
            exchange.added = cors_requests.headers_of(rules, scope.method, scope.headers)
            return False
        cors_requests.check_preflight(scope.headers)
        _send(exchange, cors_requests.preflight(rules, scope.headers), "")
        return True


class ClaimedShareKeys:
    """Looks up keys, public names and hosts in memory only, never in the database.

    Requests whose organization is not known from memory share the turns of one more organization.
    """

    def __init__(
        self, keys: AccessKeys, directory: Directory, hosts: Hosts, proxies: TrustedProxies
    ) -> None:
        self._keys = keys
        self._directory = directory
        self._hosts = hosts
        self._proxies = proxies

    def of(self, scope: HttpScope) -> ShareKey:
        """Return the share key: (organization, client's network)."""
        organization_id = self._organization(scope)
        owner = "unknown" if organization_id is None else organization_id
        return owner, network_of(self._proxies.client_of(scope))

    def _organization(self, scope: HttpScope) -> int | None:
        claimed = scope.headers.get("authorization") or scope.query_string
        match = _CLAIMED_KEY.search(claimed) if claimed else None
        if match is not None:
            key = self._keys.known(match[1])
            return None if key is None else key.tenant.organization_id
        name: str | int | None
        if scope.raw_path.startswith(CDN_PREFIX):
            name = scope.raw_path.removeprefix(CDN_PREFIX).partition("/")[0]
        else:
            name = self._hosts.known_bucket_id(scope.authority)
        bucket = None if name is None else self._directory.known_bucket(name)
        return None if bucket is None else bucket.tenant.organization_id


def _as_s3(exc: Exception) -> S3Error:
    if isinstance(exc, S3Error):
        return exc
    if isinstance(exc, BrainError):
        return from_brain_error(exc)
    return S3Error("InternalError")


def _send_error(exchange: Exchange, error: S3Error, scope: HttpScope, request_id: str) -> None:
    headers = [*error.headers.items()]
    if error.status == 503:
        headers.append(("retry-after", SLOW_DOWN_S))
    resource = unquote(scope.raw_path[: 3 * RESOURCE_CHARS])[:RESOURCE_CHARS]
    body = xml.error_document(error, resource, request_id)
    _send(exchange, S3Response(error.status, headers, body), request_id)


def _send(exchange: Exchange, response: S3Response, request_id: str) -> None:
    # A request of plain HTTP has no id.
    ids = [("x-amz-request-id", request_id), ("x-amz-id-2", request_id)] if request_id else []
    headers: HeaderPairs = [*ids, *response.headers]
    if not response.body or exchange.scope.method == "HEAD":
        exchange.response_empty(response.status, headers)
        return
    exchange.response_bytes(
        response.status, [*headers, ("content-type", response.content_type)], response.body
    )
