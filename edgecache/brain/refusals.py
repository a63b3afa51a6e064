"""What only the JSON APIs refuse, beyond the errors of the brain's parts.

BrainError
├── Malformed              400  not JSON, or not an object
├── NotAuthenticated       401
├── Missing                404  absent, or another tenant's: NodeMissing, AccessKeyMissing
├── MethodNotAllowed       405
├── TooSlow                408  the body did not arrive
├── EndpointTaken          409
├── NotPossible            409  what was asked does not fit the state it is in
├── NodeRemoved            410
└── TooLarge               413
"""

from edgecache.brain.errors import BrainError


class Malformed(BrainError):
    """A body that is not a JSON object."""

    code = "malformed"
    status = 400
    sentence = "The body is not a JSON object."


class NotAuthenticated(BrainError):
    """No credential, or a wrong one: not told apart."""

    code = "not_authenticated"
    status = 401
    sentence = "The credential is missing or wrong."


class Missing(BrainError):
    """Nothing of that name that the caller may see."""

    code = "not_found"
    status = 404
    sentence = "There is nothing here."


class NodeMissing(Missing):
    """There is no such node."""

    code = "node_not_found"
    sentence = "There is no such node."


class AccessKeyMissing(Missing):
    """The environment has no such access key."""

    code = "access_key_not_found"
    sentence = "There is no such access key."


class MethodNotAllowed(BrainError):
    """The path does not have that method."""

    code = "method_not_allowed"
    status = 405
    sentence = "This path does not have that method."


class TooSlow(BrainError):
    """A body that did not arrive in time."""

    code = "timeout"
    status = 408
    sentence = "The request did not arrive in time."


class EndpointTaken(BrainError):
    """A node has this endpoint already."""

    code = "endpoint_taken"
    status = 409
    sentence = "A node with this endpoint is registered already."


class NotPossible(BrainError):
    """What was asked does not fit the state of the thing."""

    code = "not_possible"
    status = 409
    sentence = "That is not possible in its present state."


class NodeRemoved(BrainError):
    """The node was here and has been removed for good."""

    code = "node_removed"
    status = 410
    sentence = "This node has been removed."


class TooLarge(BrainError):
    """A body beyond the limit."""

    code = "too_large"
    status = 413
    sentence = "The body is larger than this path takes."
