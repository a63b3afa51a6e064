"""Settings of the managed store, of its uploads, and of the store that ``movestore`` moves to.

A store is named by its URL, and by its endpoint if it has one, without credentials. The machine's
own identity is not used.
"""

import re
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from common.settings.env import Env, SettingError
from common.settings.table import (
    integer,
    load,
    secret,
    text,
)

DATA_FOLDER: Final = "file://"
EXAMPLES: Final = "file:///folder, s3://bucket/prefix, gs://bucket/prefix, az://account/container"
BUCKET: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?", re.ASCII)
PATH: Final = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*", re.ASCII)
ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+", re.ASCII)
SCHEMES: Final = ("file", "s3", "gs", "az")

GIB: Final = 2**30


class StoreUrl(NamedTuple):
    """The parts of a store's URL. path: a folder, or the prefix within the bucket."""

    scheme: str
    account: str
    bucket: str
    path: str


def parse_url(text: str) -> StoreUrl:
    """Return the parts of a store's URL. Raises ValueError with a sentence."""
    refusal = f"must be like {EXAMPLES}."
    try:
        parts = urlsplit(text)
    except ValueError:
        raise ValueError(refusal) from None
    if parts.scheme not in SCHEMES or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(refusal)
    if not PATH.fullmatch(parts.path):
        raise ValueError(refusal)
    if parts.scheme == "file":
        if parts.netloc:
            raise ValueError(refusal)
        return StoreUrl("file", "", "", parts.path)
    if not BUCKET.fullmatch(parts.netloc):
        raise ValueError(refusal)
    if parts.scheme == "az":
        container, _, prefix = parts.path[1:].partition("/")
        if not container:
            raise ValueError(refusal)
        return StoreUrl("az", parts.netloc, container, prefix)
    return StoreUrl(parts.scheme, "", parts.netloc, parts.path[1:])


def store_url(text: str) -> str:
    """Return a store's URL without a slash at its end; '' stays.

    Raises ValueError with a sentence.
    """
    if not text:
        return ""
    url = text if text == DATA_FOLDER else text.rstrip("/")
    parse_url(url)
    return url


def store_endpoint(text: str) -> str:
    """Return an endpoint without a slash at its end; '' stays.

    Raises ValueError with a sentence.
    """
    url = text.rstrip("/")
    if url and not ENDPOINT.fullmatch(url):
        raise ValueError("must be like https://s3.example.com.")
    return url


def _endpoint_row(name: str, url: str) -> Any:
    return text(
        name, f"Endpoint of {url}, where it is not the provider's own.", parse=store_endpoint
    )


def _region_row(name: str, url: str) -> Any:
    return text(name, f"Region of {url} (S3).", default="us-east-1")


def _access_key_row(name: str, url: str) -> Any:
    return text(name, f"Access key id of {url} (S3).")


def _secret_key_row(name: str, url: str) -> Any:
    return secret(
        name,
        f"Secret of {url}: the secret access key (S3), the service account's JSON (Google Cloud "
        "Storage), the account's key (Azure).",
        min_chars=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """A store and how it is reached. name: its name in the database."""

    url: str = text(
        "ZBRAIN_STORE_URL",
        "Where objects of buckets without an origin are kept: `file://` (the data directory), "
        "`file:///folder`, `s3://bucket/prefix`, `gs://bucket/prefix` or "
        "`az://account/container/prefix`. Change it with `manage.py movestore`.",
        default=DATA_FOLDER,
        parse=store_url,
    )
    endpoint: str = _endpoint_row("ZBRAIN_STORE_ENDPOINT", "ZBRAIN_STORE_URL")
    region: str = _region_row("ZBRAIN_STORE_REGION", "ZBRAIN_STORE_URL")
    access_key: str = _access_key_row("ZBRAIN_STORE_ACCESS_KEY", "ZBRAIN_STORE_URL")
    secret_key: str = _secret_key_row("ZBRAIN_STORE_SECRET_KEY", "ZBRAIN_STORE_URL")

    @property
    def name(self) -> str:
        """Return the URL, with the endpoint where there is one."""
        return f"{self.url} at {self.endpoint}" if self.endpoint else self.url

    @property
    def parts(self) -> StoreUrl:
        return parse_url(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadSettings:
    """Limits of unfinished uploads."""

    limit_bytes: int = integer(
        "ZBRAIN_UPLOADS_GIB",
        "What parts of one organization's unfinished uploads may take in a managed store; in "
        "the data directory they count in ZBRAIN_STAGING_MIB.",
        default=1024,
        unit="GiB",
        minimum=1,
        maximum=2**20,
        scale=GIB,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStoreSettings(StoreSettings):
    """The store to move to."""

    url: str = text(
        "ZBRAIN_STORE_NEXT_URL", "The store that `manage.py movestore` moves to.", parse=store_url
    )
    endpoint: str = _endpoint_row("ZBRAIN_STORE_NEXT_ENDPOINT", "ZBRAIN_STORE_NEXT_URL")
    region: str = _region_row("ZBRAIN_STORE_NEXT_REGION", "ZBRAIN_STORE_NEXT_URL")
    access_key: str = _access_key_row("ZBRAIN_STORE_NEXT_ACCESS_KEY", "ZBRAIN_STORE_NEXT_URL")
    secret_key: str = _secret_key_row("ZBRAIN_STORE_NEXT_SECRET_KEY", "ZBRAIN_STORE_NEXT_URL")


def read_stores(env: Env) -> tuple[StoreSettings, ...]:
    """Return the store, and the one to move to where it is set. Raises SettingError."""
    chosen = [load(StoreSettings, env)]
    check_store(chosen[0], "ZBRAIN_STORE_")
    following = load(NextStoreSettings, env)
    if following.url:
        chosen.append(following)
        check_store(following, "ZBRAIN_STORE_NEXT_")
        if chosen[0].name == following.name:
            raise SettingError("ZBRAIN_STORE_NEXT_URL", "is the same store as ZBRAIN_STORE_URL.")
    return tuple(chosen)


def check_store(store: StoreSettings, prefix: str) -> None:
    """Check that a store has the credentials that it needs. Raises SettingError."""
    scheme = store.parts.scheme
    if scheme == "s3" and not store.access_key:
        raise SettingError(f"{prefix}ACCESS_KEY", "is missing: an S3 store needs it.")
    if scheme != "file" and not store.secret_key:
        raise SettingError(f"{prefix}SECRET_KEY", "is missing: the store needs it.")
    if scheme == "gs" and not _is_service_account(store.secret_key):
        raise SettingError(f"{prefix}SECRET_KEY", "must be the JSON of a service account.")
    if scheme == "file" and store.endpoint:
        raise SettingError(f"{prefix}ENDPOINT", "has no meaning for a folder.")


def _is_service_account(text: str) -> bool:
    try:
        account = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    names = ("client_email", "private_key", "private_key_id")
    return isinstance(account, dict) and all(isinstance(account.get(n), str) for n in names)
