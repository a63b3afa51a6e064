"""The statements that find what has to be moved between stores, and that commit a move.

A move names the expected old value, so a row that was changed concurrently stays as it is.
"""

from typing import Final, LiteralString

# The data directory's id is NULL: its bytes have no row, or one without a store.
BLOBS: Final[LiteralString] = (
    "SELECT l.id, l.organization_id, l.environment_pk, l.store_id, l.name,"
    " l.name AS source, b.sha256, b.size"
    " FROM brain_storedblob l JOIN brain_blob b ON b.sha256 = l.blob_id"
    " WHERE l.store_id <> %s AND l.id > %s ORDER BY l.id LIMIT %s"
)
FILES: Final[LiteralString] = (
    "SELECT s.id, k.organization_id, k.environment_pk, NULL AS store_id, '' AS name,"
    " encode(s.blob_id, 'hex') AS source, b.sha256, b.size"
    " FROM brain_storedobject s JOIN brain_bucket k ON k.id = s.bucket_id"
    " JOIN brain_blob b ON b.sha256 = s.blob_id"
    " WHERE s.id > %s AND NOT EXISTS (SELECT FROM brain_storedblob l"
    " WHERE l.blob_id = s.blob_id AND l.organization_id = k.organization_id"
    " AND l.environment_pk = k.environment_pk) ORDER BY s.id LIMIT %s"
)
PARTS: Final[LiteralString] = (
    "SELECT p.id, k.organization_id, k.environment_pk, p.store_id, p.file AS name,"
    " p.file AS source, p.size, p.etag"
    " FROM brain_uploadpart p JOIN brain_upload u ON u.id = p.upload_id"
    " JOIN brain_bucket k ON k.id = u.bucket_id"
    " WHERE p.store_id IS DISTINCT FROM %s AND p.id > %s ORDER BY p.id LIMIT %s"
)
MOVE_BLOB: Final = (
    "UPDATE brain_storedblob SET store_id = %s, name = %s, stored_at = now()"
    " WHERE id = %s AND store_id = %s AND name = %s RETURNING id"
)
MOVE_BLOB_TO_FILE: Final = (
    "DELETE FROM brain_storedblob WHERE id = %s AND store_id = %s AND name = %s RETURNING id"
)
IS_STORED: Final = (
    "SELECT 1 FROM brain_storedobject s JOIN brain_bucket k ON k.id = s.bucket_id"
    " WHERE s.blob_id = %s AND k.organization_id = %s AND k.environment_pk = %s LIMIT 1"
)
IS_PART: Final = "SELECT 1 FROM brain_uploadpart WHERE id = %s AND file = %s"
HOLD: Final = "SELECT 1 FROM brain_blob WHERE sha256 = %s FOR KEY SHARE"
MOVE_PART: Final = (
    "UPDATE brain_uploadpart SET store_id = %s, file = %s"
    " WHERE id = %s AND store_id IS NOT DISTINCT FROM %s AND file = %s RETURNING id"
)
DISCARD: Final = (
    "INSERT INTO brain_discardedbytes (store_id, name, due_at)"
    " VALUES (%s, %s, now() + make_interval(secs => %s))"
)
LEFT: Final = (
    "SELECT count(*) AS objects, coalesce(sum(b.size), 0)::bigint AS bytes FROM"
    " (SELECT DISTINCT s.blob_id, k.organization_id, k.environment_pk"
    " FROM brain_storedobject s JOIN brain_bucket k ON k.id = s.bucket_id) held"
    " JOIN brain_blob b ON b.sha256 = held.blob_id"
    " LEFT JOIN brain_storedblob l ON l.blob_id = held.blob_id"
    " AND l.organization_id = held.organization_id AND l.environment_pk = held.environment_pk"
    " WHERE l.store_id IS DISTINCT FROM %s"
)
LEFT_PARTS: Final = (
    "SELECT count(*) AS parts, coalesce(sum(size), 0)::bigint AS bytes FROM brain_uploadpart"
    " WHERE store_id IS DISTINCT FROM %s"
)
BRAINS: Final = (
    "SELECT id, %(target)s = ANY(stores) AS reaches, store_id IS NOT DISTINCT FROM %(target)s"
    " AS writes FROM brain_braininstance WHERE lease_until > clock_timestamp() ORDER BY id"
)
