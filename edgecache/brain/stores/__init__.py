"""The managed store: folders, S3, GCS, Azure; parts of uploads.

Door: archived_bytes, managed, move, reachable_stores, relocation, store, stored_blobs,
upload_parts, upload_parts_limit.
Stands on: aws, common, conf, core, db, disk, edgecache.runtime, origins.
"""
