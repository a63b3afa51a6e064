"""Buckets and their objects, whose bodies go over URLs that the platform signs."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Optional
from urllib.parse import quote

from zonal._sync.listing import listed
from zonal._sync.rows import raw_pieces
from zonal._sync.transport import Call, Transport
from zonal.bodies import given
from zonal.decoding import decode
from zonal.files import Source
from zonal.types import (
    Bucket,
    DownloadUrl,
    ListedObject,
    Object,
    ObjectVersion,
    SignedLink,
    UploadForm,
    UploadUrls,
    VersionId,
)

PATH = "/v1/cache/buckets"


class Buckets:
    """The environment's buckets."""

    def __init__(self, transport: Transport) -> None:
        """Send through a transport."""
        self._transport = transport

    def list(self) -> Iterator[Bucket]:
        """Return all of them."""
        return listed(self._transport, PATH, Bucket)

    def get(self, bucket: str) -> Bucket:
        """Return one."""
        return decode(Bucket, self._transport.call(Call("GET", _path(bucket))))

    def create(
        self,
        name: str,
        *,
        is_public: Optional[bool] = None,
        origin: Optional[str] = None,
        origin_prefix: Optional[str] = None,
    ) -> Bucket:
        """Make one; without an origin the platform keeps its objects."""
        body = {
            "name": name,
            **given(is_public=is_public, origin=origin, origin_prefix=origin_prefix),
        }
        return decode(Bucket, self._transport.call(Call("POST", PATH, body)))

    def update(self, bucket: str, **fields: Any) -> Bucket:
        """Change fields, such as ``is_public=True``."""
        return decode(Bucket, self._transport.call(Call("PATCH", _path(bucket), fields)))

    def delete(self, bucket: str) -> None:
        """Delete one that is empty."""
        self._transport.call(Call("DELETE", _path(bucket)))

    def objects(self, bucket: str, *, prefix: str = "") -> Iterator[ListedObject]:
        """Return the objects whose keys begin with a prefix, in the order of their keys."""
        params = given(prefix=prefix or None)
        while True:
            call = Call("GET", f"{_path(bucket)}/objects", params=params)
            page = self._transport.call(call)
            for found in page["objects"]:
                yield decode(ListedObject, found)
            if page["next_after"] is None:
                return
            params["after"] = page["next_after"]

    def object(self, bucket: str, key: str) -> Object:
        """Return what is known of one object."""
        call = Call("GET", f"{_path(bucket)}/objects/details", params={"key": key})
        return decode(Object, self._transport.call(call))

    def versions(self, bucket: str, *, prefix: str = "") -> Iterator[ObjectVersion]:
        """Return versions and delete markers, of each key the newest first."""
        params = given(prefix=prefix or None)
        while True:
            call = Call("GET", f"{_path(bucket)}/objects/versions", params=params)
            page = self._transport.call(call)
            for found in page["versions"]:
                yield decode(ObjectVersion, found)
            if page["next_after"] is None:
                return
            params |= {"after": page["next_after"], "after_version": page["next_version"]}

    def delete_version(self, bucket: str, key: str, version_id: str) -> None:
        """Delete a version for good, or a delete marker, which brings the object back."""
        body = {"key": key, "version_id": version_id}
        path = f"{_path(bucket)}/objects/versions/delete"
        self._transport.call(Call("POST", path, body, is_repeatable=True))

    def restore_version(self, bucket: str, key: str, version_id: str) -> str:
        """Make a copy of a version the current one; return its id."""
        body = {"key": key, "version_id": version_id}
        call = Call("POST", f"{_path(bucket)}/objects/versions/restore", body)
        return decode(VersionId, self._transport.call(call)).version_id

    def delete_objects(self, bucket: str, keys: Sequence[str]) -> None:
        """Delete objects; those that do not exist are no error."""
        body = {"keys": list(keys)}
        path = f"{_path(bucket)}/objects/delete"
        self._transport.call(Call("POST", path, body, is_repeatable=True))

    def download_url(
        self,
        bucket: str,
        key: str,
        *,
        expires_in_s: Optional[int] = None,
        disposition: Optional[Literal["attachment", "inline"]] = None,
        version_id: Optional[str] = None,
    ) -> DownloadUrl:
        """Return a signed URL that a browser may GET without a token."""
        more = given(expires_in_s=expires_in_s, disposition=disposition, version_id=version_id)
        body = {"key": key, **more}
        call = Call("POST", f"{_path(bucket)}/objects/download-url", body, is_repeatable=True)
        return decode(DownloadUrl, self._transport.call(call))

    def signed_link(
        self,
        bucket: str,
        key: Optional[str] = None,
        *,
        prefix: Optional[str] = None,
        query: Optional[str] = None,
        host: Optional[str] = None,
        expires_in_s: Optional[int] = None,
    ) -> SignedLink:
        """Return a link that opens a key, or all keys that begin with a prefix, up to a year.

        query: of the key's URL, if the bucket has an origin. host: one of the bucket's.
        """
        body = given(key=key, prefix=prefix, query=query, host=host, expires_in_s=expires_in_s)
        call = Call("POST", f"{_path(bucket)}/signed-links", body, is_repeatable=True)
        return decode(SignedLink, self._transport.call(call))

    def revoke_signed_links(self, bucket: str) -> None:
        """End all signed links of a bucket."""
        self._transport.call(Call("DELETE", f"{_path(bucket)}/signed-links"))

    def upload_url(
        self,
        bucket: str,
        key: str,
        *,
        content_type: Optional[str] = None,
        expires_in_s: Optional[int] = None,
    ) -> UploadUrls:
        """Return a signed URL to PUT one object at: ``urls[0]``."""
        body = {"key": key, **given(content_type=content_type, expires_in_s=expires_in_s)}
        call = Call("POST", f"{_path(bucket)}/objects/upload-urls", body, is_repeatable=True)
        return decode(UploadUrls, self._transport.call(call))

    def upload_form(
        self,
        bucket: str,
        *,
        key: Optional[str] = None,
        prefix: Optional[str] = None,
        max_bytes: Optional[int] = None,
        content_type: Optional[str] = None,
        redirect_url: Optional[str] = None,
        expires_in_s: Optional[int] = None,
    ) -> UploadForm:
        """Return a signed form with which a browser uploads a file of this key, or below a prefix.

        Its ``fields`` come before the ``file``. It can be used more than once until it expires.
        """
        body = given(
            key=key,
            prefix=prefix,
            max_bytes=max_bytes,
            content_type=content_type,
            redirect_url=redirect_url,
            expires_in_s=expires_in_s,
        )
        call = Call("POST", f"{_path(bucket)}/objects/upload-form", body, is_repeatable=True)
        return decode(UploadForm, self._transport.call(call))

    def upload(
        self,
        bucket: str,
        key: str,
        source: Source,
        *,
        content_type: str = "application/octet-stream",
        on_sent: Optional[Callable[[int], None]] = None,
    ) -> None:
        """Write one object. source: a ``Path``, or the bytes.

        on_sent: called with the number of bytes sent so far, less again if all are sent again.
        """
        signed = self.upload_url(bucket, key, content_type=content_type)
        headers = {"Content-Type": content_type}
        call = Call("PUT", "", url=signed.urls[0], headers=headers, content=source, on_sent=on_sent)
        self._transport.send(call)

    @contextmanager
    def download(self, bucket: str, key: str) -> Iterator[Iterator[bytes]]:
        """Yield the pieces of an object, in constant memory.

        Raises StreamCutError if it was cut, within the iteration.
        """
        signed = self.download_url(bucket, key)
        # As it is stored: a packed object is not unpacked on the way.
        headers = {"Accept": "*/*", "Accept-Encoding": "identity"}
        response = self._transport.send(
            Call("GET", "", url=signed.url, headers=headers), is_stream=True
        )
        try:
            yield raw_pieces(response)
        finally:
            response.close()


def _path(bucket: str) -> str:
    return f"{PATH}/{quote(bucket, safe='')}"
