"""PostObject: a browser's form, which a signed policy allows; its file is written as by PutObject.

Source: AWS, "POST Object".
"""

import re
from typing import Final
from urllib.parse import quote, urlencode

from edgecache.brain.aws.errors import S3Error, not_implemented
from edgecache.brain.aws.post_policy import IGNORED, OF_SIGNATURES, missing
from edgecache.brain.aws.posted_form import TYPE, PostedForm
from edgecache.brain.aws.requests import S3Request, check_name_and_key, header_value
from edgecache.brain.aws.xml import document
from edgecache.brain.core.values import METADATA_PREFIX, OBJECT_HEADERS, TAGGING_HEADER
from edgecache.brain.s3 import tags
from edgecache.brain.s3.context import RequestContext, S3Response
from edgecache.brain.s3.objects.put import put_object
from edgecache.brain.s3.operation_inputs import OF_FORMS, check_value
from edgecache.http.exchange import BodyTimeout, Exchange
from edgecache.http.headers import Headers

_STATUS: Final = "success_action_status"
_REDIRECT: Final = "success_action_redirect"
_STATUSES: Final = ("200", "201", "204")
_URL: Final = re.compile(r"https?://[!-~]+")
_TAGGING: Final = "tagging"
# By their fields.
_HEADERS: Final = {name: name for name in (*OBJECT_HEADERS, "content-type", *OF_FORMS)} | {
    "acl": "x-amz-acl"
}
_OTHER_FIELDS: Final = OF_SIGNATURES | {"key", "bucket", _TAGGING, _STATUS, _REDIRECT}
# Of the request, which is not the object. A browser sends Cache-Control when it reloads.
_OF_REQUEST: Final = frozenset((*OBJECT_HEADERS, "content-type"))
_REFUSED: Final = ("content-encoding", "content-md5")


def is_form(request: S3Request) -> bool:
    """True if a POST to a bucket is a form."""
    is_of_bucket = bool(request.bucket) and not request.key
    return is_of_bucket and request.header("content-type").lower().startswith(TYPE)


def signature_version(form: PostedForm) -> str:
    """Return the version of a form's signature, as access logs name it."""
    return "SigV4" if "x-amz-signature" in form.fields else "SigV2"


async def with_form(request: S3Request, exchange: Exchange) -> S3Request:
    """Read a form up to its file, and return the request with it and its key.

    Raises S3Error: what ``PostedForm.read_fields`` raises; InvalidArgument, KeyTooLongError (the
    key); NotImplemented for what a form's URL and head cannot have; RequestTimeout.
    """
    for name, _ in request.parameters:
        raise not_implemented(f"The parameter {name[:100]} of PostObject")
    if request.header("authorization"):
        raise S3Error("InvalidArgument", "A form is signed in its fields, not in a header.")
    for name in _REFUSED:
        if name in request.headers:
            raise not_implemented(f"The header {name} of PostObject")
    form = PostedForm(exchange, request.header("content-type"))
    try:
        await form.read_fields()
    except BodyTimeout:
        raise S3Error("RequestTimeout") from None
    key = form.fields.get("key", "")
    if not key:
        raise missing("key")
    check_name_and_key(request.bucket, key)
    return request._replace(key=key, form=form)


async def post_object(context: RequestContext) -> S3Response:
    """Store the form's file, or nothing.

    Raises S3Error: NotImplemented (an unknown field), InvalidArgument, what ``PutObject`` raises.
    """
    form = context.request.form
    if form is None:
        raise S3Error("InternalError")
    redirect, status = _success(form)
    context.request = await _as_put(context.request, form)
    stored = await put_object(context)
    request, headers = context.request, dict(stored.headers)
    etag = headers["etag"]
    if redirect:
        address, mark, fragment = redirect.partition("#")
        query = urlencode({"bucket": request.bucket, "key": request.key, "etag": etag})
        joined = f"{address}{'&' if '?' in address else '?'}{query}"
        return S3Response(303, [*stored.headers, ("location", joined + mark + fragment)])
    location = _location(context)
    body = b""
    if status == 201:
        body = document(
            "PostResponse",
            [
                ("Location", location),
                ("Bucket", request.bucket),
                ("Key", request.key),
                ("ETag", etag),
            ],
            namespace="",
        )
    return S3Response(status, [*stored.headers, ("location", location)], body)


def _success(form: PostedForm) -> tuple[str, int]:
    """Return the URL to go to, or '', and the status without one.

    Raises S3Error InvalidArgument.
    """
    redirect, status = form.fields.get(_REDIRECT, ""), form.fields.get(_STATUS, "204")
    if redirect and not _URL.fullmatch(redirect):
        raise S3Error("InvalidArgument", f"{_REDIRECT} is not a URL of http or https.")
    if status not in _STATUSES:
        raise S3Error("InvalidArgument", f"{_STATUS} is one of {', '.join(_STATUSES)}.")
    return redirect, int(status)


async def _as_put(request: S3Request, form: PostedForm) -> S3Request:
    """Return the request of a PutObject with the form's fields as its headers.

    Raises S3Error: NotImplemented, InvalidArgument, MalformedXML, InvalidTag, BadRequest.
    """
    headers = [pair for pair in request.headers.items() if pair[0] not in _OF_REQUEST]
    for name, value in form.fields.items():
        header = _HEADERS.get(name, name if name.startswith(METADATA_PREFIX) else "")
        if header:
            check_value(header, value)
            headers.append((header, header_value(header, value)))
        elif name not in _OTHER_FIELDS and not name.startswith(IGNORED):
            raise not_implemented(f"The field {name[:100]} of PostObject")
    if form.fields.get(_TAGGING):
        wanted = form.fields[_TAGGING].encode()
        found = await tags.parsed(wanted, limit=tags.OF_OBJECT_LIMIT)
        headers.append((TAGGING_HEADER, tags.encoded(found)))
    return request._replace(headers=Headers(headers))


def _location(context: RequestContext) -> str:
    """Return the object's URL at the API."""
    request = context.request
    scheme = context.dependencies.proxies.scheme_of(context.exchange.scope)
    place = request.key if request.is_host_style else f"{request.bucket}/{request.key}"
    return f"{scheme}://{request.host}/{quote(place)}"
