"""The managed store: folders, S3, GCS; parts of uploads.

Door: archived_bytes, byte_store, folder_store, managed, move, reachable_stores, readiness,
relocation, stored_blobs, upload_parts, upload_parts_limit.
Imports: aws, common, conf, core, db, disk, edgecache.http, edgecache.protocol,
edgecache.runtime, origins.
"""
