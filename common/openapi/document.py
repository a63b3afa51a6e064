"""The OpenAPI document as a whole: the settings of drf-spectacular."""

from typing import Any, Final

from common.openapi import tags

_DESCRIPTION: Final = """\
Zonal is a multi-tenant data platform. An organization has members and environments (`live`,
`sandbox` and its own); each environment has a PostgreSQL database, queried with `POST /v1/sql`,
and buckets of an S3-compatible edge cache.

**Authentication.** Sign up or log in for an access token and a refresh token, and send
`Authorization: Bearer <access token>`. A session acts in one environment; switch to act in another.
Where a login answers `mfa_required`, answer a challenge with the `mfa_token` first.

**Errors** are `application/problem+json` (RFC 9457) with a stable `code`; each operation lists its
own. 401 carries `WWW-Authenticate`, 429 and 503 carry `Retry-After`.

**Bodies** are one JSON object. A field that an operation does not know is refused, and so is a body
where the operation reads none. Later releases may add fields to answers.

**Changes** set the fields that they name. Where an answer has an `ETag`, a change that sends it as
`If-Match` is refused with 409 `changed_since_read` if the fields were changed since.

**Lists** are pages: `next` and `previous` are the URLs of the pages beside, or null.
"""

SPECTACULAR_SETTINGS: Final[dict[str, Any]] = {
    "TITLE": "Zonal",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "TAGS": tags.described(),
    # An extension that most viewers of OpenAPI documents support.
    "EXTENSIONS_ROOT": {"x-tagGroups": tags.chapters()},
    # Without drf-spectacular's own hook, which creates a component for each set of choices: the
    # `status` of two resources would need the same name.
    "POSTPROCESSING_HOOKS": ["common.openapi.problems.add_components"],
    "SCHEMA_PATH_PREFIX": "/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": [],
    "SERVE_AUTHENTICATION": [],
    "COMPONENT_SPLIT_REQUEST": True,
}
