"""``/v1/everyone/…``: the rows of all tenants, searched and a page at a time, for the staff.

Paths of their own, so that a call that forgot its tenant never gets another's.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, LiteralString

from edgecache.brain.db.database import BrainDatabase, Row
from edgecache.brain.directory.versions import BUCKET, bucket_of
from edgecache.brain.internal_api import access_keys, buckets
from edgecache.brain.json_api.app import JsonCall, JsonResponse, Route
from edgecache.protocol.fields import Count, Message, RowId, Text
from edgecache.protocol.resources import OriginOptions

PAGE: Final = 100
# Case-insensitive; a name is searched in each of its parts.
WANTED: Final[LiteralString] = (
    " AND (%s::bigint IS NULL OR organization_id = %s)"
    " AND (%s = '' OR position(lower(%s) in lower({name})) > 0)"
)


class ListingQuery(Message, frozen=True, kw_only=True):
    """A page after a text, such as a host. search: a part of the name."""

    after: Text = ""
    organization_id: RowId | None = None
    search: Text = ""


class NumberedQuery(ListingQuery, frozen=True, kw_only=True):
    """A page after a number."""

    after: Count = 0  # type: ignore[assignment] # another type than a listing's by text


@dataclass(frozen=True, slots=True)
class TenantsListing:
    """What is listed. statement: ends where the conditions follow; id: unique, in its order."""

    path: str
    statement: LiteralString
    id: LiteralString
    name: LiteralString
    has_number: bool
    shape: Callable[[Row], dict[str, Any]]

    @property
    def field(self) -> str:
        """The field of the answer that holds the rows."""
        return self.path.replace("-", "_")

    def sql(self) -> LiteralString:
        """Return the statement of a page."""
        wanted = WANTED.replace("{name}", self.name)
        return self.statement + self.id + " > %s" + wanted + " ORDER BY " + self.id + " LIMIT %s"


def _bucket(row: Any) -> dict[str, Any]:
    return buckets.shape(bucket_of(row))


def _plain(row: Any) -> dict[str, Any]:
    shown: dict[str, Any] = row._asdict()
    return shown


LISTINGS: Final = (
    TenantsListing("buckets", BUCKET, "id", "name", has_number=True, shape=_bucket),
    TenantsListing(
        "access-keys",
        "SELECT organization_id, environment_pk, {} FROM brain_accesskey WHERE ".replace(
            "{}", access_keys.COLUMNS
        ),
        "id",
        "id || ' ' || label",
        has_number=False,
        shape=_plain,
    ),
    TenantsListing(
        "origins",
        "SELECT id, organization_id, environment_pk, name, kind, config, created_by,"
        " created_at, {} FROM brain_origin WHERE ".replace(
            "{}", ", ".join(OriginOptions.__struct_fields__)
        ),
        "id",
        "name || ' ' || config::text",
        has_number=True,
        shape=_plain,
    ),
    TenantsListing(
        "bucket-hosts",
        "SELECT host, bucket, organization_id, environment_pk, proved_at, checked_at, gone_since"
        " FROM (SELECT h.host, b.name AS bucket, b.organization_id, b.environment_pk, h.proved_at,"
        " h.checked_at, h.gone_since FROM brain_host h JOIN brain_bucket b ON b.id = h.bucket_id)"
        " AS host WHERE ",
        'host COLLATE "C"',
        "host",
        has_number=False,
        shape=_plain,
    ),
)
ID_FIELDS: Final = {"buckets": "id", "origins": "id", "bucket-hosts": "host"}


def routes(database: BrainDatabase) -> list[Route]:
    """Return the routes.

    Query parameters: after, the last page's ``next``, which is null at the end; organization_id;
    search, a part of the name.
    """
    return [
        Route("GET", f"/v1/everyone/{each.path}", _handler(database, each)) for each in LISTINGS
    ]


def _handler(database: BrainDatabase, listing: TenantsListing) -> Callable[..., Any]:
    id_field = ID_FIELDS.get(listing.path, "access_key_id")

    async def handle(call: JsonCall) -> JsonResponse:
        query = call.read_query(NumberedQuery if listing.has_number else ListingQuery)
        tenant, search = query.organization_id, query.search
        values = [query.after, tenant, tenant, search, search, PAGE + 1]
        rows = [listing.shape(row) for row in await database.all(listing.sql(), values)]
        shown = rows[:PAGE]
        following = str(shown[-1][id_field]) if len(rows) > PAGE else None
        return JsonResponse({listing.field: shown, "next": following})

    return handle
