"""Errors of the JSON APIs alone, beside those of the brain's parts.

BrainError
├── MalformedBody          400  not JSON, or not an object
├── NotAuthenticated       401
├── NotFound               404  of the brain's parts
│   └── AccessKeyNotFound
├── PathMethodNotAllowed   405
├── SlowBody               408  the body did not arrive
├── NodeRemoved            410
└── BodyTooLarge           413
"""

from edgecache.brain.core.errors import BrainError, NotFound


class MalformedBody(BrainError):
    """A body that is not a JSON object."""

    code = "malformed"
    status = 400
    sentence = "The body is not a JSON object."


class NotAuthenticated(BrainError):
    """No credential, or a wrong one: not distinguished."""

    code = "not_authenticated"
    status = 401
    sentence = "The credential is missing or wrong."


class AccessKeyNotFound(NotFound):
    """The environment has no such access key."""

    code = "access_key_not_found"
    sentence = "There is no such access key."


class PathMethodNotAllowed(BrainError):
    """The path does not have that method."""

    code = "method_not_allowed"
    status = 405
    sentence = "This path does not have that method."


class SlowBody(BrainError):
    """A body that did not arrive in time."""

    code = "timeout"
    status = 408
    sentence = "The request did not arrive in time."


class NodeRemoved(BrainError):
    """The node existed and has been removed permanently."""

    code = "node_removed"
    status = 410
    sentence = "This node has been removed."


class BodyTooLarge(BrainError):
    """A body beyond the limit."""

    code = "too_large"
    status = 413
    sentence = "The body is larger than this path takes."
