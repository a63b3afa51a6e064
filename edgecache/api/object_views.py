"""``/v1/cache/buckets/{bucket_name}/objects``: browse, delete, URLs and forms to read and write."""

from typing import Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from audit import trail
from common.api.views import NO_STORE
from common.permissions import needs
from edgecache.api import objects
from edgecache.api.audit_tags import CacheTag
from edgecache.api.errors import BucketNotFound, ObjectNotFound, OriginFailed, OriginReadOnly
from edgecache.api.object_serializers import (
    DownloadUrlRequestSerializer,
    DownloadUrlSerializer,
    ObjectKeySerializer,
    ObjectKeysSerializer,
    ObjectPageSerializer,
    ObjectQuerySerializer,
    ObjectSerializer,
    ObjectVersionSerializer,
    UploadFormRequestSerializer,
    UploadFormSerializer,
    UploadUrlsRequestSerializer,
    UploadUrlsSerializer,
    VersionIdSerializer,
    VersionPageSerializer,
    VersionsQuerySerializer,
)
from edgecache.api.views import CacheResource

# Keys that an event lists; there may be a thousand of a kilobyte each.
AUDITED_KEYS: Final = 10


class ObjectViewSet(CacheResource):
    """Objects of a bucket. Their bytes go between the client and the object API."""

    tag = "Objects"
    access = {
        "list": needs("objects", "read"),
        "details": needs("objects", "read"),
        "list_versions": needs("objects", "read"),
        "restore_version": needs("objects", "create"),
        "delete_version": needs("objects", "delete"),
        "delete_many": needs("objects", "delete"),
        "download_url": needs("objects", "read"),
        "upload_urls": needs("objects", "create"),
        "upload_form": needs("objects", "create"),
    }
    errors = {
        "list": (BucketNotFound, OriginReadOnly, OriginFailed),
        "details": (BucketNotFound, ObjectNotFound, OriginFailed),
        "list_versions": (BucketNotFound, OriginReadOnly, OriginFailed),
        "restore_version": (BucketNotFound, ObjectNotFound),
        "delete_version": (BucketNotFound,),
        "delete_many": (BucketNotFound, OriginReadOnly, OriginFailed),
        "download_url": (BucketNotFound,),
        "upload_urls": (BucketNotFound,),
        "upload_form": (BucketNotFound,),
    }
    query_serializers = {
        "list": ObjectQuerySerializer,
        "details": ObjectKeySerializer,
        "list_versions": VersionsQuerySerializer,
    }
    request_serializers = {
        "restore_version": ObjectVersionSerializer,
        "delete_version": ObjectVersionSerializer,
        "delete_many": ObjectKeysSerializer,
        "download_url": DownloadUrlRequestSerializer,
        "upload_urls": UploadUrlsRequestSerializer,
        "upload_form": UploadFormRequestSerializer,
    }
    response_serializers = {
        "list": ObjectPageSerializer,
        "details": ObjectSerializer,
        "list_versions": VersionPageSerializer,
        "restore_version": VersionIdSerializer,
        "delete_version": None,
        "delete_many": None,
        "download_url": DownloadUrlSerializer,
        "upload_urls": UploadUrlsSerializer,
        "upload_form": UploadFormSerializer,
    }
    success_statuses = {
        "delete_version": status.HTTP_204_NO_CONTENT,
        "delete_many": status.HTTP_204_NO_CONTENT,
    }

    @extend_schema(operation_id="cache_objects_list", summary="List objects")
    def list(self, request: Request, bucket_name: str) -> Response:
        """List a bucket's keys, with `delimiter=/` as folders and files."""
        query = self.read_query()
        return self.respond(objects.page_of(self.principal.scope, bucket_name, query))

    @extend_schema(summary="Read an object's details")
    @action(detail=False)
    def details(self, request: Request, bucket_name: str) -> Response:
        """Return an object's size, type, headers and metadata."""
        key = self.read_query()["key"]
        return self.respond(objects.find(self.principal.scope, bucket_name, key))

    @extend_schema(summary="List versions of objects")
    @action(detail=False, url_path="versions")
    def list_versions(self, request: Request, bucket_name: str) -> Response:
        """List the versions of a bucket's objects and delete markers, of each key the newest first.

        With a key as `prefix` its versions come first.
        """
        query = self.read_query()
        return self.respond(objects.versions_of(self.principal.scope, bucket_name, query))

    @extend_schema(summary="Restore a version of an object")
    @action(detail=False, methods=["post"], url_path="versions/restore")
    def restore_version(self, request: Request, bucket_name: str) -> Response:
        """Make a version the current one again, as a copy; nothing is removed."""
        body = self.read()
        made = objects.restore(self.principal.scope, bucket_name, body)
        trail.record_request(
            self.platform_request, CacheTag.OBJECT_RESTORE, bucket=bucket_name, **body
        )
        return self.respond(made)

    @extend_schema(summary="Delete a version of an object")
    @action(detail=False, methods=["post"], url_path="versions/delete")
    def delete_version(self, request: Request, bucket_name: str) -> Response:
        """Delete one version for good, or a delete marker, which brings the object back."""
        body = self.read()
        objects.delete_version(self.principal.scope, bucket_name, body)
        trail.record_request(
            self.platform_request, CacheTag.VERSION_DELETE, bucket=bucket_name, **body
        )
        return self.no_content()

    @extend_schema(summary="Delete objects")
    @action(detail=False, methods=["post"], url_path="delete")
    def delete_many(self, request: Request, bucket_name: str) -> Response:
        """Delete objects, at the bucket's origin too; absent ones are ignored."""
        keys = self.read()["keys"]
        objects.delete(self.principal.scope, bucket_name, keys)
        trail.record_request(
            self.platform_request,
            CacheTag.OBJECT_DELETE,
            bucket=bucket_name,
            count=len(keys),
            keys=keys[:AUDITED_KEYS],
        )
        return self.no_content()

    @extend_schema(summary="Create a URL to read an object")
    @action(detail=False, methods=["post"], url_path="download-url")
    def download_url(self, request: Request, bucket_name: str) -> Response:
        """Presign a URL with which anyone reads this one object until it expires."""
        body, now = self.read(), timezone.now()
        made = objects.url_to_read(
            self.principal.scope, bucket_name, body, origin=self._own_origin(), now=now
        )
        trail.record_request(
            self.platform_request, CacheTag.OBJECT_SHARE, bucket=bucket_name, **body
        )
        return self.respond(made, headers=NO_STORE)

    @extend_schema(summary="Create URLs to write an object")
    @action(detail=False, methods=["post"], url_path="upload-urls")
    def upload_urls(self, request: Request, bucket_name: str) -> Response:
        """Presign URLs that write this one object, whole or in parts, until they expire."""
        body, now = self.read(), timezone.now()
        made = objects.url_to_write(
            self.principal.scope, bucket_name, body, origin=self._own_origin(), now=now
        )
        # Parts belong to an upload whose creation and completion are recorded.
        if body["step"] != "part":
            audited = {name: body[name] for name in ("key", "step", "expires_in_s")}
            trail.record_request(
                self.platform_request, CacheTag.OBJECT_UPLOAD, bucket=bucket_name, **audited
            )
        return self.respond(made, headers=NO_STORE)

    @extend_schema(summary="Create a form to upload a file")
    @action(detail=False, methods=["post"], url_path="upload-form")
    def upload_form(self, request: Request, bucket_name: str) -> Response:
        """Sign a form with which anyone uploads files until it expires (S3's presigned POST)."""
        body, now = self.read(), timezone.now()
        made = objects.form_to_write(self.principal.scope, bucket_name, body, now=now)
        trail.record_request(
            self.platform_request,
            CacheTag.OBJECT_UPLOAD,
            bucket=bucket_name,
            key=body.get("key") or body["prefix"],
            step="form",
            expires_in_s=body["expires_in_s"],
        )
        return self.respond(made, headers=NO_STORE)

    def _own_origin(self) -> str:
        """Return this platform's web origin: only the console's scripts may use the URLs."""
        return f"{self.request.scheme}://{self.request.get_host()}"
