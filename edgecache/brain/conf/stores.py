"""Settings of the managed store, and of the store that ``movestore`` moves to.

A store is named by its URL, and by its endpoint if it has one, without credentials. The machine's
own identity is not used.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from common.settings.env import Env, SettingError
from common.settings.table import (
    load,
    secret,
    text,
)

DATA_FOLDER: Final = "file://"
EXAMPLES: Final = "file:///folder, s3://ACCESS_KEY@bucket/prefix, gs://ACCESS_KEY@bucket/prefix"
BUCKET: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,253}[A-Za-z0-9])?", re.ASCII)
PATH: Final = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*", re.ASCII)
ENDPOINT: Final = re.compile(r"https?://[A-Za-z0-9.:\[\]-]+", re.ASCII)
ACCESS_KEY: Final = re.compile(r"[A-Za-z0-9._%+=-]+", re.ASCII)
SCHEMES: Final = ("file", "s3", "gs")
DEFAULT_REGION: Final = "us-east-1"


class StoreUrl(NamedTuple):
    """The parts of a store's URL. path: a folder, or the prefix within the bucket."""

    scheme: str
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
        return StoreUrl("file", "", parts.path)
    if not BUCKET.fullmatch(parts.netloc):
        raise ValueError(refusal)
    return StoreUrl(parts.scheme, parts.netloc, parts.path[1:])


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings:
    """A store and how it is reached.

    url: without the access key, the endpoint and the region.
    """

    url: str = DATA_FOLDER
    endpoint: str = ""
    region: str = DEFAULT_REGION
    access_key: str = ""
    secret_key: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """Return its name in the database: the URL, with the endpoint where there is one."""
        return f"{self.url} at {self.endpoint}" if self.endpoint else self.url

    @property
    def parts(self) -> StoreUrl:
        return parse_url(self.url)


def parse_store(text: str) -> StoreSettings:
    """Return the store that a URL names, without its secret; '' is none.

    Raises ValueError with a sentence.
    """
    if text in {"", DATA_FOLDER}:
        return StoreSettings(url=text)
    refusal = f"must be like {EXAMPLES}."
    try:
        parts = urlsplit(text)
        query = dict(
            parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        )
    except ValueError:
        raise ValueError(refusal) from None
    user, mark, bucket = parts.netloc.rpartition("@")
    if parts.scheme == "file" and not parts.path.strip("/"):
        raise ValueError(refusal)
    url = urlunsplit((parts.scheme, bucket, parts.path.rstrip("/"), "", parts.fragment))
    parse_url(url)
    if query.keys() - {"endpoint", "region"} or (mark and not ACCESS_KEY.fullmatch(user)):
        raise ValueError(refusal)
    if parts.scheme != "s3" and "region" in query:
        raise ValueError("may have a region for S3 alone.")
    if parts.scheme == "file" and (mark or query):
        raise ValueError("may not have an access key or an endpoint for a folder.")
    return StoreSettings(
        url=url,
        endpoint=_endpoint(query.get("endpoint", "")),
        region=query.get("region", DEFAULT_REGION),
        access_key=unquote(user),
    )


def _endpoint(text: str) -> str:
    endpoint = text.rstrip("/")
    if endpoint and not ENDPOINT.fullmatch(endpoint):
        raise ValueError("must have an endpoint like https://s3.example.com.")
    return endpoint


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagedStores:
    """The managed store, and the one that ``movestore`` moves to."""

    store: StoreSettings = text(
        "ZBRAIN_STORE_URL",
        "Where objects of buckets without an origin are kept: `file://` (the data directory), "
        "`file:///folder`, `s3://ACCESS_KEY@bucket/prefix?region=eu-central-1` or, for Google "
        "Cloud Storage, `gs://ACCESS_KEY@bucket/prefix`; "
        "`?endpoint=https://s3.example.com` where it is not the provider's own. Change it with "
        "`manage.py movestore`.",
        default=DATA_FOLDER,
        parse=parse_store,
    )
    secret_key: str = secret(
        "ZBRAIN_STORE_SECRET_KEY",
        "Secret of ZBRAIN_STORE_URL's access key; for Google Cloud Storage an HMAC key's.",
        min_chars=1,
    )
    next_store: StoreSettings = text(
        "ZBRAIN_STORE_NEXT_URL", "The store that `manage.py movestore` moves to.", parse=parse_store
    )
    next_secret_key: str = secret(
        "ZBRAIN_STORE_NEXT_SECRET_KEY", "Secret of ZBRAIN_STORE_NEXT_URL.", min_chars=1
    )


def read_stores(env: Env) -> tuple[StoreSettings, ...]:
    """Return the store, and the one to move to where it is set. Raises SettingError."""
    given = load(ManagedStores, env)
    first = with_secret(given.store, given.secret_key, "ZBRAIN_STORE_")
    if not given.next_store.url:
        return (first,)
    following = with_secret(given.next_store, given.next_secret_key, "ZBRAIN_STORE_NEXT_")
    if first.name == following.name:
        raise SettingError("ZBRAIN_STORE_NEXT_URL", "is the same store as ZBRAIN_STORE_URL.")
    return first, following


def with_secret(store: StoreSettings, secret_key: str, prefix: str) -> StoreSettings:
    """Return a store with its secret. Raises SettingError if it lacks a credential."""
    scheme = store.parts.scheme
    if scheme != "file" and not store.access_key:
        raise SettingError(
            f"{prefix}URL",
            f"must have the id of its access key: {scheme}://ACCESS_KEY@bucket/prefix.",
        )
    if scheme != "file" and not secret_key:
        raise SettingError(f"{prefix}SECRET_KEY", "is missing: the store needs it.")
    return replace(store, secret_key=secret_key)
