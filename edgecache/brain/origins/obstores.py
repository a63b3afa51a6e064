"""Origins accessed by obstore: Google Cloud Storage and Azure Blob Storage.

Its paths cannot say every key, and change some without a word (``a/`` becomes ``a``): such keys
are refused. Credentials come from a function of ours, so that nothing of the machine's is used.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jwt
import obstore
import orjson
from obstore import exceptions
from obstore.store import AzureStore, GCSStore

from edgecache.brain.core.errors import (
    KeyRefused,
    OriginDenied,
    OriginFailed,
    OriginMissing,
    OriginTimeout,
    PreconditionFailed,
)
from edgecache.brain.core.paging import after, paged
from edgecache.brain.core.values import (
    DEFAULT_CONTENT_TYPE,
    Conditions,
    KeyPage,
    ListedObject,
    StagedFile,
    WrittenFields,
)
from edgecache.brain.origins.config import OriginConfig
from edgecache.brain.origins.connections import CONNECT_TIMEOUT_S
from edgecache.brain.origins.driver import PLAIN, OriginRequest, OriginResponse, WriteResult
from edgecache.brain.origins.egress.guard import Resolve

if TYPE_CHECKING:  # obstore has these for type checkers alone
    from obstore import GetResult, ObjectMeta
    from obstore.store import AzureConfig, AzureCredential, GCSConfig, GCSCredential

PIECE_BYTES: Final = 256 * 1024
PART_BYTES: Final = 16 * 2**20
CONCURRENT_PARTS: Final = 3
# Which headers obstore knows by a name of their own.
NAMED: Final = {
    "cache-control": "Cache-Control",
    "content-disposition": "Content-Disposition",
    "content-encoding": "Content-Encoding",
    "content-language": "Content-Language",
}
TYPE: Final = "Content-Type"
NEVER: Final = datetime.fromtimestamp(0, UTC)
HTTPS_PORT: Final = 443
GOOGLE: Final = "https://storage.googleapis.com"
TOKEN_LIFE: Final = timedelta(minutes=55)
GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
# A request from its first to its last byte; one that stalls is cut earlier.
WHOLE_TIMEOUT: Final = timedelta(hours=6)
RETRY: Final[dict[str, Any]] = {"max_retries": 1, "retry_timeout": timedelta(seconds=30)}


@dataclass(frozen=True, slots=True)
class ObstoreAccess:
    """How obstore reaches an origin: over TLS, through the brain's proxy.

    trust: additional certificate authorities, as PEM.
    """

    proxy_url: str
    stall_timeout_s: float
    trust: str = ""

    def options(self) -> dict[str, Any]:
        client: dict[str, Any] = {
            "proxy_url": self.proxy_url,
            "allow_http": False,
            "connect_timeout": timedelta(seconds=CONNECT_TIMEOUT_S * 2),
            "read_timeout": timedelta(seconds=self.stall_timeout_s),
            "timeout": WHOLE_TIMEOUT,
            "user_agent": "zonal",
        }
        if self.trust:
            client["root_certificate"] = self.trust
        return {"client_options": client, "retry_config": RETRY}


class ObstoreDriver:
    """One bucket or container, and the prefix within it. endpoint: where its store connects to."""

    def __init__(
        self, store: GCSStore | AzureStore, resolve: Resolve, endpoint: str, *, prefix: str
    ) -> None:
        self.store = store
        self.prefix = prefix
        self._resolve = resolve
        self._site = urlsplit(endpoint)

    @asynccontextmanager
    async def get(
        self, key: str, _question: OriginRequest = PLAIN
    ) -> AsyncIterator[OriginResponse]:
        path = await self._opened(key)
        with _named():
            result = await obstore.get_async(self.store, path)
        yield _answer(result.meta, result.attributes, _body(result))

    async def head(self, key: str) -> OriginResponse:
        """Get an object's metadata."""
        path = await self._opened(key)
        with _named():
            result = await obstore.get_async(self.store, path, options={"head": True})
        return _answer(result.meta, result.attributes, None)

    async def put(
        self, key: str, staged: StagedFile, fields: WrittenFields, conditions: Conditions
    ) -> WriteResult:
        path = await self._opened(key)
        mode = await self._mode(path, conditions)
        with _named():
            result = await obstore.put_async(
                self.store,
                path,
                staged.path,
                attributes=_attributes(fields),
                mode=mode,
                use_multipart=staged.manifest.size > PART_BYTES and mode == "overwrite",
                chunk_size=PART_BYTES,
                max_concurrency=CONCURRENT_PARTS,
            )
        etag = _unquoted(result["e_tag"])
        response = await self.head(key)
        now = datetime.now(UTC).replace(microsecond=0)
        return WriteResult(etag, response.last_modified if response.etag == etag else now)

    async def delete(self, keys: Sequence[str]) -> None:
        for path in [await self._opened(key) for key in keys]:
            try:
                with _named():
                    await obstore.delete_async(self.store, path)
            except OriginMissing:
                continue

    async def list(self, prefix: str, start_after: str, delimiter: str, limit: int) -> KeyPage:
        whole = self.prefix + prefix
        await self._check_address()
        # obstore's prefixes end at a slash: other prefixes are searched within a longer list.
        folder = whole[: whole.rfind("/") + 1] or None
        border = after(prefix, start_after, delimiter)
        rows: list[ListedObject] = []
        if delimiter == "/":
            with _named():
                found = await obstore.list_with_delimiter_async(self.store, folder)
            rows += (ListedObject(f"{name}/", 0, "", NEVER) for name in found["common_prefixes"])
            rows += (_listed(meta) for meta in found["objects"])
            return paged(map(self._homed, rows), prefix, border, delimiter, limit)
        async for row in self._walk(folder, self.prefix + start_after):
            homed = self._homed(row)
            if homed.key > border and homed.key.startswith(prefix):
                rows.append(homed)
            if not delimiter and len(rows) > limit:
                break
        return paged(rows, prefix, border, delimiter, limit)

    async def _walk(self, folder: str | None, offset: str) -> AsyncIterator[ListedObject]:
        stream = obstore.list(self.store, folder, offset=offset or None, chunk_size=1000)
        while True:
            with _named():
                try:
                    metas = await anext(stream)
                except StopAsyncIteration:
                    return
            for meta in metas:
                yield _listed(meta)

    async def _mode(self, path: str, conditions: Conditions) -> Any:
        if conditions.if_none_match:
            return "create"
        if conditions.if_match is None:
            return "overwrite"
        with _named():
            meta = await obstore.head_async(self.store, path)
        if conditions.if_match not in {"*", _unquoted(meta["e_tag"])}:
            raise PreconditionFailed
        return {"e_tag": meta["e_tag"], "version": meta["version"]}

    async def _check_address(self) -> None:
        # The proxy checks, too; but obstore reports its refusal like any other failure.
        port = self._site.port or HTTPS_PORT
        await self._resolve(self._site.hostname or "", port)

    async def _opened(self, key: str) -> str:
        """Return the path of a key, at an origin that may be asked."""
        path = self.prefix + key
        if any(segment in {"", ".", ".."} for segment in path.split("/")):
            raise KeyRefused("This bucket's origin cannot hold a key with an empty or dotted part.")
        await self._check_address()
        return path

    def _homed(self, row: ListedObject) -> ListedObject:
        return replace(row, key=row.key.removeprefix(self.prefix))


def open_gcs(config: OriginConfig, access: ObstoreAccess) -> GCSStore:
    """Return the store of a Google Cloud Storage bucket."""
    settings: GCSConfig = {
        "bucket": config.config["bucket"],
        "base_url": config.config.get("endpoint", GOOGLE),
    }
    if not config.secret:
        settings["skip_signature"] = True
        return GCSStore(config=settings, **access.options())
    account = orjson.loads(config.secret["service_account"])
    return GCSStore(
        config=settings, credential_provider=lambda: google_token(account), **access.options()
    )


def open_azure(config: OriginConfig, access: ObstoreAccess) -> AzureStore:
    """Return the store of an Azure container."""
    account = config.config["account"]
    settings: AzureConfig = {
        "account_name": account,
        "container_name": config.config["container"],
        "endpoint": azure_endpoint(config),
        "use_emulator": False,
    }
    if not config.secret:
        settings["skip_signature"] = True
        return AzureStore(config=settings, **access.options())
    given = _azure_credential(config.secret)
    return AzureStore(config=settings, credential_provider=lambda: given, **access.options())


def _azure_credential(secret: Mapping[str, str]) -> "AzureCredential":
    if "sas_token" in secret:
        return {"sas_token": secret["sas_token"].removeprefix("?"), "expires_at": None}
    return {"access_key": secret["account_key"], "expires_at": None}


def azure_endpoint(config: OriginConfig) -> str:
    """Return where an account is asked."""
    account = config.config["account"]
    return config.config.get("endpoint", f"https://{account}.blob.core.windows.net")


def google_token(account: Mapping[str, str]) -> "GCSCredential":
    """Sign a token for ourselves: no token endpoint is asked, and none can be named.

    Source: Google, "Self-signed JWTs with scopes" (AIP-4111).
    """
    now = datetime.now(UTC)
    expires_at = now + TOKEN_LIFE
    claims = {
        "iss": account["client_email"],
        "sub": account["client_email"],
        "scope": GOOGLE_SCOPE,
        "iat": now,
        "exp": expires_at,
    }
    headers = {"kid": account["private_key_id"]}
    token = jwt.encode(claims, account["private_key"], algorithm="RS256", headers=headers)
    return {"token": token, "expires_at": expires_at}


async def _body(result: "GetResult") -> AsyncIterator[bytes]:
    size, came = result.meta["size"], 0
    stream = aiter(result.stream(min_chunk_size=PIECE_BYTES))
    while True:
        with _named():
            try:
                piece = await anext(stream)
            except StopAsyncIteration:
                break
        came += len(piece)
        yield bytes(piece)
    if came != size:
        raise OriginFailed("The origin sent another number of bytes than it announced.")


def _answer(
    meta: "ObjectMeta", attributes: Mapping[str, str], body: AsyncIterator[bytes] | None
) -> OriginResponse:
    return OriginResponse(
        status=200,
        size=meta["size"],
        etag=_unquoted(meta["e_tag"]),
        content_type=attributes.get(TYPE, DEFAULT_CONTENT_TYPE)[:255],
        last_modified=meta["last_modified"].astimezone(UTC),
        headers={name: attributes[named] for name, named in NAMED.items() if named in attributes},
        metadata={
            name: value
            for name, value in attributes.items()
            if name not in {TYPE, "Storage-Class", *NAMED.values()}
        },
        body=body,
    )


def _attributes(fields: WrittenFields) -> dict[str, str]:
    known = {NAMED[name]: value for name, value in fields.headers.items() if name in NAMED}
    return {TYPE: fields.content_type, **known, **fields.metadata}


def _listed(meta: "ObjectMeta") -> ListedObject:
    return ListedObject(
        meta["path"], meta["size"], _unquoted(meta["e_tag"]), meta["last_modified"].astimezone(UTC)
    )


def _unquoted(etag: str | None) -> str:
    return (etag or "").removeprefix("W/").strip('"')[:200]


@contextmanager
def _named() -> Iterator[None]:
    """Map obstore's errors to OriginError; their texts name our proxy and are not passed on."""
    try:
        yield
    except (exceptions.NotFoundError, FileNotFoundError):
        raise OriginMissing from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError):
        raise OriginDenied from None
    except (exceptions.PreconditionError, exceptions.AlreadyExistsError):
        raise PreconditionFailed from None
    except (exceptions.InvalidPathError, ValueError):
        raise KeyRefused("This bucket's origin cannot hold such a key.") from None
    except exceptions.BaseError as exc:
        words = str(exc).lower()
        if "timed out" in words or "timeout" in words:
            raise OriginTimeout from None
        raise OriginFailed from None
