"""What a member may set of buckets, access keys and origins, declared once.

The platform's serializers and pages of staff, and the brain's values, SQL and table of buckets are
made from this. A new option of a bucket is a field here, its migration (``makemigrations``) and the
code that uses it.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

# Names of request headers, and their lengths.
HEADERS_LIMIT: Final = 20
HEADER_CHARS: Final = 64
KEY_LABEL_CHARS: Final = 100
PREFIX_CHARS: Final = 1024
# A document's name in its folder, and its key.
INDEX_CHARS: Final = 255
DOCUMENT_CHARS: Final = 1024
# With four bytes each and the rest of the name it is a key.
LOG_PREFIX_CHARS: Final = 200
# One value of an origin's configuration, and of its credentials.
CONFIG_CHARS: Final = 2048
SECRET_CHARS: Final = 16384

# A host name, with its port.
CONFIG_HOST_CHARS: Final = 259

OriginKind = Literal["s3", "gcs", "http"]
KeyAccess = Literal["read", "write"]
# Never on, on, or off again: a bucket that had versions keeps them.
Versioning = Literal["", "Enabled", "Suspended"]


class BucketOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a bucket, which may change at any time.

    Each is a column of ``brain_bucket``: bool, int, str, or a tuple of texts without commas.
    """

    is_public: Annotated[
        bool, Meta(description="Anyone may read its objects, without a key at `/p/{public_name}/`.")
    ] = False
    allows_redirect: Annotated[
        bool, Meta(description="Plain HTTP clients may be redirected to a cache worker.")
    ] = False
    verifies_reads: Annotated[
        bool, Meta(description="Every read is verified, instead of once for each change of a file.")
    ] = False
    forwards_writes: Annotated[
        bool,
        Meta(
            description="`POST`, `PUT`, `PATCH`, `DELETE` and other unsafe methods are forwarded "
            "to an HTTP origin."
        ),
    ] = False
    forwarded_headers: Annotated[
        tuple[Annotated[str, Meta(max_length=HEADER_CHARS)], ...],
        Meta(
            max_length=HEADERS_LIMIT,
            description="Request headers that an HTTP origin gets as well; `*` for all but a few.",
        ),
    ] = ()
    versioning: Annotated[
        Versioning,
        Meta(
            description="`Enabled`: an overwritten or deleted object is kept as a version. "
            "`Suspended`: no new ones, after it was enabled; empty: it never was."
        ),
    ] = ""
    website_index: Annotated[
        str,
        Meta(
            max_length=INDEX_CHARS,
            description="The bucket is a website, whose folders are served by their object of this "
            "name, such as `index.html`; empty for no website.",
        ),
    ] = ""
    website_error: Annotated[
        str,
        Meta(
            max_length=DOCUMENT_CHARS,
            description="The key of the website's page for what it does not have, sent with 404.",
        ),
    ] = ""
    website_fallback: Annotated[
        bool,
        Meta(
            description="The website is a single page: a browser that opens a page it does not "
            "have gets the index document at its root, with 200."
        ),
    ] = False
    log_bucket: Annotated[
        str,
        Meta(
            max_length=63,
            description="The bucket of the same environment that gets the access log; empty for "
            "no log.",
        ),
    ] = ""
    log_prefix: Annotated[
        str,
        Meta(
            max_length=LOG_PREFIX_CHARS,
            description="What the keys of the access log's objects begin with.",
        ),
    ] = ""


class OriginOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of an origin, which may change at any time.

    Each is a column of ``brain_origin``, as those of a bucket.
    """

    connect_timeout_s: Annotated[
        int,
        Meta(ge=1, le=60, description="Seconds in which a connection is made, TLS included."),
    ] = 5
    first_byte_timeout_s: Annotated[
        int, Meta(ge=1, le=600, description="Seconds until a response begins.")
    ] = 30
    idle_timeout_s: Annotated[
        int,
        Meta(
            ge=0,
            le=3600,
            description="Seconds between two pieces of a body; 0 for no limit. "
            "Event streams have none.",
        ),
    ] = 30
    connections: Annotated[
        int,
        Meta(ge=0, le=1024, description="Requests of each brain at a time; 0 for no limit."),
    ] = 0
    host: Annotated[
        str,
        Meta(
            max_length=CONFIG_HOST_CHARS,
            description="The `Host` that an HTTP origin gets; empty for that of its URL.",
        ),
    ] = ""


class AccessKeyOptions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of an access key, set when it is created."""

    label: Annotated[
        str,
        Meta(max_length=KEY_LABEL_CHARS, description="A name to show.", extra={"is_name": True}),
    ] = ""
    access: Annotated[KeyAccess, Meta(description="`write` can read as well.")] = "write"
