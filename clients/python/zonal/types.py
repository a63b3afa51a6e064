"""The API's answers; written by `make clients` from docs/openapi.yaml.

A later release may add fields: they are ignored. Fields that an answer may lack are None then.
"""

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Literal, Optional

__all__ = [
    "AccessKey",
    "ApiKey",
    "AttributeShape",
    "Bucket",
    "CacheMetrics",
    "CacheStatus",
    "Challenge",
    "ChangedMember",
    "Column",
    "Connections",
    "ConstraintShape",
    "Created",
    "DatabaseShape",
    "Disk",
    "DomainConstraintShape",
    "DownloadUrl",
    "Environment",
    "EnvironmentDetail",
    "EnvironmentRef",
    "Environments",
    "FunctionShape",
    "Import",
    "IndexShape",
    "InstalledExtensionShape",
    "Invitation",
    "Item",
    "ListedObject",
    "LoginAnswer",
    "Member",
    "NamespaceShape",
    "NewAccessKey",
    "NewApiKey",
    "Notice",
    "Object",
    "ObjectVersion",
    "OrganizationUsage",
    "Permissions",
    "Purge",
    "ReferenceShape",
    "RemovedMember",
    "Result",
    "Schema",
    "SignInWarning",
    "SignedLink",
    "SqlAnswer",
    "SqlUsageRow",
    "Statements",
    "Stats",
    "TableColumnShape",
    "TableShape",
    "TerminalStarted",
    "TokenPair",
    "Transaction",
    "TypeShape",
    "UploadForm",
    "UploadUrls",
    "Usage",
    "UsageRow",
    "VersionId",
    "Whoami",
]


@dataclass(frozen=True)
class TokenPair:
    """The tokens of a session; times in Unix seconds."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    access_expires_at: int
    refresh_expires_at: int


@dataclass(frozen=True)
class EnvironmentRef:
    """An environment inside other responses."""

    id: str
    name: str


@dataclass(frozen=True)
class SignInWarning:
    """What a user should know after signing in."""

    code: Literal["mfa_enrollment_due", "address_moved"]
    # Unix seconds; with `mfa_enrollment_due`.
    deadline: Optional[int] = None


@dataclass(frozen=True)
class LoginAnswer:
    """A finished sign-in; ``device_token`` replaces that of a trusted device."""

    access_token: str = field(repr=False)
    refresh_token: str = field(repr=False)
    access_expires_at: int
    refresh_expires_at: int
    environment: EnvironmentRef
    status: Literal["authenticated"]
    email_verified: bool
    warnings: list[SignInWarning]
    device_token: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class TerminalStarted:
    """A request. matching_code: shown on the page as well; page_url: for the user's browser."""

    request_id: str
    matching_code: str
    page_url: str
    expires_at: int


@dataclass(frozen=True)
class Challenge:
    """A challenge."""

    challenge_id: str
    method: str
    methods: list[str]
    expires_at: int
    attempts_left: int
    delivery_hint: Optional[str]
    delivery: Optional[str] = None
    request_options: Optional[dict[str, Any]] = None


@dataclass(frozen=True)
class Whoami:
    """The session behind the token; API keys and development tokens have no user and no session."""

    user_id: Optional[str]
    email: Optional[str]
    email_verified: Optional[bool]
    org_id: int
    organization: str
    environment: EnvironmentRef
    roles: list[str]
    labels: list[str]
    session_id: Optional[str]
    aal: int
    amr: list[str]
    auth_time: Optional[int]
    access_expires_at: Optional[int]
    api_key_id: Optional[str]


@dataclass(frozen=True)
class Permissions:
    """Effective permissions: ``{resource: [actions]}``."""

    roles: list[str]
    permissions: dict[str, list[str]]


@dataclass(frozen=True)
class Column:
    """A column of a result."""

    name: str
    # As in pg_type; arrays as `int8[]`.
    type: str
    oid: int
    # The name in objects, if two columns share one.
    key: Optional[str] = field(default=None, repr=False)


@dataclass(frozen=True)
class Result:
    """The result of one statement."""

    columns: list[Column]
    # Objects, or arrays with `rows: arrays`.
    rows: list[Any]
    # Rows returned or changed.
    row_count: int
    # As `SELECT` or `CREATE TABLE`.
    command: str
    # True if rows are missing.
    truncated: bool
    # With `explain`: PostgreSQL's plan.
    plan: Any = None


@dataclass(frozen=True)
class Notice:
    """A message of the server beside the result, with the members that an error has."""

    severity: str
    sqlstate: str
    message: str
    detail: Optional[str] = None
    hint: Optional[str] = None
    # Its number in `queries`.
    statement: Optional[int] = None
    # In characters of the text, from 1; `line` and `column`, too.
    position: Optional[int] = None
    line: Optional[int] = None
    column: Optional[int] = None
    schema: Optional[str] = None
    table: Optional[str] = None
    column_name: Optional[str] = None
    constraint: Optional[str] = None
    data_type: Optional[str] = None


@dataclass(frozen=True)
class Stats:
    """Figures of the request."""

    elapsed_ms: float
    # Of the rows, or of an imported body.
    bytes: int


@dataclass(frozen=True)
class SqlAnswer:
    """The last statement's result, and with several statements all of them in `results`."""

    columns: list[Column]
    # Objects, or arrays with `rows: arrays`.
    rows: list[Any]
    # Rows returned or changed.
    row_count: int
    # As `SELECT` or `CREATE TABLE`.
    command: str
    # True if rows are missing.
    truncated: bool
    notices: list[Notice]
    stats: Stats
    request_id: str
    # With `explain`: PostgreSQL's plan.
    plan: Any = None
    results: Optional[list[Result]] = None


@dataclass(frozen=True)
class Disk:
    """The environment's database on disk, with indexes and what VACUUM has yet to free."""

    # Null before the first measurement; one is made each minute.
    used_bytes: Optional[int]
    limit_bytes: int
    # While true, only DELETE, TRUNCATE, DROP and reading work.
    exceeded: bool
    measured_at: Optional[datetime]


@dataclass(frozen=True)
class Environments:
    """The organization's environments."""

    used: int
    limit: int


@dataclass(frozen=True)
class Connections:
    """Connections to the environment's database, which the gateway opens."""

    limit: int
    limit_per_role: int


@dataclass(frozen=True)
class Statements:
    """Limits of statements. Each web process counts its own concurrent statements."""

    running_limit_per_environment: int
    running_limit_per_organization: int
    timeout_ms: int
    # Of a streamed result, until its client has read it.
    stream_timeout_ms: int
    # Of an import, its upload included.
    import_timeout_ms: int
    # Of one result in JSON.
    max_rows: int
    # Of all rows of one JSON answer.
    max_bytes: int
    # Of the body of `POST /v1/sql`.
    body_limit_bytes: int
    # Of an imported body, unpacked.
    import_limit_bytes: int


@dataclass(frozen=True)
class Usage:
    """What is used, and the limits."""

    disk: Disk
    environments: Environments
    connections: Connections
    statements: Statements


@dataclass(frozen=True)
class DatabaseShape:
    """The database as a whole."""

    size_bytes: int
    # PostgreSQL's own.
    server_version: str


@dataclass(frozen=True)
class NamespaceShape:
    """A schema."""

    name: str
    comment: Optional[str]


@dataclass(frozen=True)
class DomainConstraintShape:
    """A CHECK of a domain."""

    # The domain that has it: this one, or one under it.
    domain: str
    name: str
    # As in SQL.
    definition: str


@dataclass(frozen=True)
class TableColumnShape:
    """A column that the caller may read or write, with what its domain says of it."""

    name: str
    # As in SQL: `character varying(20)`.
    type: str
    is_nullable: bool
    # The expression: the column's own, or else its domain's.
    default: Optional[str]
    # Those of the column's type, where that is a domain.
    domain_constraints: list[DomainConstraintShape]
    # The expression of a generated column.
    generated: Optional[str]
    identity: Optional[Literal["always", "by_default"]]
    comment: Optional[str]


@dataclass(frozen=True)
class ReferenceShape:
    """What a foreign key refers to."""

    schema: str
    table: str
    columns: list[str]


@dataclass(frozen=True)
class ConstraintShape:
    """A constraint of a table."""

    name: str
    kind: Literal["primary_key", "unique", "foreign_key", "check", "exclusion"]
    # As in SQL.
    definition: str
    columns: list[str]
    references: Optional[ReferenceShape]


@dataclass(frozen=True)
class IndexShape:
    """An index of a table."""

    name: str
    # The statement that creates it.
    definition: str
    is_unique: bool
    is_primary: bool
    # False while it is built concurrently.
    is_valid: bool
    size_bytes: int


@dataclass(frozen=True)
class TableShape:
    """A table or view on which the caller has a privilege."""

    schema: str
    name: str
    kind: Literal["table", "partitioned_table", "view", "materialized_view", "foreign_table"]
    comment: Optional[str]
    # As of the last ANALYZE; null before the first.
    estimated_rows: Optional[int]
    # With indexes and large values.
    size_bytes: int
    # The query of a view.
    definition: Optional[str]
    columns: list[TableColumnShape]
    constraints: list[ConstraintShape]
    indexes: list[IndexShape]


@dataclass(frozen=True)
class FunctionShape:
    """A function that the caller may call."""

    schema: str
    name: str
    kind: Literal["function", "procedure", "aggregate", "window"]
    # As in SQL, with defaults.
    arguments: str
    # Null for a procedure.
    returns: Optional[str]
    language: str
    is_security_definer: bool
    comment: Optional[str]


@dataclass(frozen=True)
class AttributeShape:
    """A member of a composite type."""

    name: str
    type: str


@dataclass(frozen=True)
class TypeShape:
    """A type of the tenant's own."""

    schema: str
    name: str
    kind: Literal["enum", "domain", "range", "composite"]
    # Of an enum.
    labels: Optional[list[str]]
    # Of a domain.
    base_type: Optional[str]
    # Of a domain: the expression.
    default: Optional[str]
    # Of a domain.
    is_nullable: Optional[bool]
    # Of a domain, with those of the domains under it.
    constraints: Optional[list[DomainConstraintShape]]
    # Of a composite type.
    columns: Optional[list[AttributeShape]]
    comment: Optional[str]


@dataclass(frozen=True)
class InstalledExtensionShape:
    """An installed extension."""

    name: str
    version: str
    schema: str


@dataclass(frozen=True)
class Schema:
    """The database's schema as the caller's role may see it."""

    database: DatabaseShape
    schemas: list[NamespaceShape]
    tables: list[TableShape]
    functions: list[FunctionShape]
    types: list[TypeShape]
    extensions: list[InstalledExtensionShape]
    # True if a limit cut a list: ask for one schema at a time.
    truncated: bool


@dataclass(frozen=True)
class Transaction:
    """An interactive transaction."""

    id: str
    state: Literal["open", "committing", "committed", "rolled_back"]
    created_at: datetime
    # It is rolled back then.
    expires_at: datetime


@dataclass(frozen=True)
class Import:
    """What an import did."""

    # `COPY`.
    command: str
    # Rows imported.
    row_count: int
    notices: list[Notice]
    stats: Stats
    request_id: str


@dataclass(frozen=True)
class Environment:
    """An environment: ``id`` is its immutable slug, ``name`` its label."""

    id: str
    name: str
    built_in: bool
    created_at: datetime
    # none: created at the first query. copying: a clone in progress, whose SQL answers 503 until it
    # is ready. failed: a clone that could not be copied.
    database_state: Literal["none", "ready", "moving", "copying", "failed"]
    # Why the clone failed; null if it did not. Of an object that could not be restored, its name
    # and PostgreSQL's message.
    database_error: Optional[str]


@dataclass(frozen=True)
class EnvironmentDetail:
    """One environment, with the progress of its copy."""

    id: str
    name: str
    built_in: bool
    created_at: datetime
    # none: created at the first query. copying: a clone in progress, whose SQL answers 503 until it
    # is ready. failed: a clone that could not be copied.
    database_state: Literal["none", "ready", "moving", "copying", "failed"]
    # Why the clone failed; null if it did not. Of an object that could not be restored, its name
    # and PostgreSQL's message.
    database_error: Optional[str]
    # The copied part of a clone's data, from 0 to 1, estimated; null if no copy is in progress.
    database_progress: Optional[float]


@dataclass(frozen=True)
class Member:
    """A member of the organization."""

    user_id: str
    email: Optional[str]
    # True if the address was verified.
    email_verified: bool
    roles: list[str]
    derived_roles: list[str]
    labels: list[str]
    # True if the member cannot sign in.
    disabled: bool
    created_at: datetime
    last_login_at: Optional[datetime]


@dataclass(frozen=True)
class Item:
    """Something that a member created."""

    kind: Literal["access_key", "api_key", "invitation", "node", "origin", "webhook"]
    id: str
    name: str
    # Its environment's id; null for the whole organization's.
    environment: Optional[str]


@dataclass(frozen=True)
class Created:
    """What a member created as an admin."""

    ends: list[Item]
    stays: list[Item]
    is_complete: bool


@dataclass(frozen=True)
class ChangedMember:
    """A changed member. created: null where it was no admin, or still is one."""

    user_id: str
    email: Optional[str]
    # True if the address was verified.
    email_verified: bool
    roles: list[str]
    derived_roles: list[str]
    labels: list[str]
    # True if the member cannot sign in.
    disabled: bool
    created_at: datetime
    last_login_at: Optional[datetime]
    created: Optional[Created]


@dataclass(frozen=True)
class RemovedMember:
    """What a removed member had created."""

    created: Created


@dataclass(frozen=True)
class Invitation:
    """An invitation; it does not reveal whether the address has an account."""

    id: str
    email: str
    roles: list[str]
    labels: list[str]
    # Return one of `pending`, `expired`, `accepted`, `revoked`.
    state: str
    # Return the inviting member's address; null for an operator or a removed member.
    invited_by: Optional[str]
    created_at: datetime
    expires_at: datetime


@dataclass(frozen=True)
class Bucket:
    """A bucket. public_name: of ``/p/{public_name}/{key}``; origin: None is the built-in one."""

    name: str
    public_name: str
    # What its objects' public URLs begin with, beside its own hosts; null if private.
    public_url: Optional[str]
    origin: Optional[str]
    origin_prefix: str
    # Anyone may read its objects, without a key at `/p/{public_name}/`.
    is_public: bool
    # Plain HTTP clients may be redirected to a cache worker.
    allows_redirect: bool
    # Every read is verified, instead of once for each change of a file.
    verifies_reads: bool
    # `POST`, `PUT`, `PATCH`, `DELETE` and other unsafe methods are forwarded to an HTTP origin.
    forwards_writes: bool
    # Request headers that an HTTP origin gets as well; `*` for all but a few.
    forwarded_headers: list[str]
    # `Enabled`: an overwritten or deleted object is kept as a version. `Suspended`: no new ones,
    # after it was enabled; empty: it never was.
    versioning: str
    # The bucket is a website, whose folders are served by their object of this name, such as
    # `index.html`; empty for no website.
    website_index: str
    # The key of the website's page for what it does not have, sent with 404.
    website_error: str
    # The website is a single page: a browser that opens a page it does not have gets the index
    # document at its root, with 200.
    website_fallback: bool
    # The bucket of the same environment that gets the access log; empty for no log.
    log_bucket: str
    # What the keys of the access log's objects begin with.
    log_prefix: str
    created_at: Optional[datetime]


@dataclass(frozen=True)
class ListedObject:
    """An object of a listing. etag: without quotes."""

    key: str = field(repr=False)
    size: int
    etag: str
    last_modified: datetime


@dataclass(frozen=True)
class Object:
    """One object. headers: such as `cache-control`; metadata: `x-amz-meta-` without that."""

    key: str = field(repr=False)
    size: int
    etag: str
    last_modified: datetime
    content_type: str
    headers: dict[str, str]
    metadata: dict[str, str]


@dataclass(frozen=True)
class ObjectVersion:
    """A version of an object, or a delete marker, which has no size."""

    key: str = field(repr=False)
    size: Optional[int]
    etag: str
    last_modified: datetime
    version_id: str
    is_latest: bool
    is_delete_marker: bool


@dataclass(frozen=True)
class VersionId:
    """The version that was made."""

    version_id: str


@dataclass(frozen=True)
class DownloadUrl:
    """A URL that reads one object, with GET."""

    url: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True)
class SignedLink:
    """A link, for GET and HEAD."""

    url: str = field(repr=False)
    # Of the URL. That of a prefix opens every URL below it.
    query: str = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True)
class UploadForm:
    """Where to post a form, as multipart/form-data: these fields first, then `file`."""

    url: str = field(repr=False)
    fields: dict[str, str] = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True)
class UploadUrls:
    """URLs for one step; for `part` one of each number, in their order."""

    method: str
    urls: list[str] = field(repr=False)
    expires_at: datetime


@dataclass(frozen=True)
class AccessKey:
    """A key pair for S3 clients, without its secret."""

    access_key_id: str
    # A name to show.
    label: str
    # `write` can read as well.
    access: str
    created_by: str
    created_at: Optional[datetime]
    last_used_at: Optional[datetime]


@dataclass(frozen=True)
class NewAccessKey:
    """A new key pair with its secret, which no later answer holds, and the endpoint to use."""

    access_key_id: str
    # A name to show.
    label: str
    # `write` can read as well.
    access: str
    created_by: str
    created_at: Optional[datetime]
    last_used_at: Optional[datetime]
    secret_access_key: str = field(repr=False)
    endpoint: str


@dataclass(frozen=True)
class ApiKey:
    """An API key without its text. hint: the last characters before the checksum."""

    id: str
    name: str
    hint: str
    role: Literal["admin", "operator", "reader"]
    scopes: list[
        Literal[
            "sql:read",
            "sql:write",
            "schema:write",
            "objects:read",
            "objects:write",
            "buckets:read",
            "buckets:write",
            "nodes:read",
            "environments:read",
        ]
    ]
    # Return one of `active`, `expired`, `revoked`.
    state: str
    # Return the address of the admin who made it; the key ends with that account.
    created_by: str
    created_at: int
    expires_at: int
    # At most a minute behind.
    last_used_at: Optional[int]
    # Empty for a key that was never used.
    last_used_address: str


@dataclass(frozen=True)
class NewApiKey:
    """A new API key. key: its text, shown in this answer only."""

    id: str
    name: str
    hint: str
    role: Literal["admin", "operator", "reader"]
    scopes: list[
        Literal[
            "sql:read",
            "sql:write",
            "schema:write",
            "objects:read",
            "objects:write",
            "buckets:read",
            "buckets:write",
            "nodes:read",
            "environments:read",
        ]
    ]
    # Return one of `active`, `expired`, `revoked`.
    state: str
    # Return the address of the admin who made it; the key ends with that account.
    created_by: str
    created_at: int
    expires_at: int
    # At most a minute behind.
    last_used_at: Optional[int]
    # Empty for a key that was never used.
    last_used_address: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class CacheStatus:
    """The cache's status."""

    brain_healthy: bool
    total_nodes: int
    online_nodes: int
    total_cache_bytes: int
    used_cache_bytes: int
    hit_ratio: float


@dataclass(frozen=True)
class CacheMetrics:
    """Counters of the whole cache since it was installed."""

    total_hits: int
    total_misses: int
    hit_ratio: float
    bytes_served: int
    bytes_stored: int
    bytes_capacity: int
    object_count: int
    evictions: int
    active_nodes: int
    avg_latency_ms: float
    p95_latency_ms: float
    p99_latency_ms: float
    collected_at: datetime


@dataclass(frozen=True)
class Purge:
    """Exact counts of a purge."""

    objects_purged: int
    bytes_freed: int
    nodes_affected: int


@dataclass(frozen=True)
class UsageRow:
    """What one bucket used in one day, and what it cost so far."""

    day: date
    # Empty for one that was deleted.
    environment: str
    bucket: str
    hits: int
    misses: int
    egress_bytes: int
    storage_byte_hours: int
    charged_ucr: int


@dataclass(frozen=True)
class SqlUsageRow:
    """What one environment used of SQL in one day, and what it cost so far."""

    day: date
    # Empty for one that was deleted.
    environment: str
    # Run, with those that failed.
    statements: int
    # From the request to its result.
    milliseconds: int
    # Of answers.
    egress_bytes: int
    storage_byte_hours: int
    charged_ucr: int


@dataclass(frozen=True)
class OrganizationUsage:
    """Usage of the cache by day, environment and bucket; of SQL by day and environment."""

    since: date
    until: date
    # The sum.
    charged_ucr: int
    cache: list[UsageRow]
    sql: list[SqlUsageRow]
