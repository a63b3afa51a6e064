"""What a worker answers when it does not do what it was asked.

Every refusal is JSON: ``{"code": stable word, "detail": a sentence for people}``.
"""

from http import HTTPStatus
from typing import Final

from edgecache.protocol.tickets import Refusal, TicketRefused

Headers = tuple[tuple[str, str], ...]

TICKET_DETAILS: Final = {
    Refusal.MALFORMED: "The ticket can't be read.",
    Refusal.UNKNOWN_KEY: "The ticket's key is not one of the brain's.",
    Refusal.WRONG_SIGNATURE: "The ticket was altered, or is not the brain's.",
    Refusal.WRONG_NODE: "The ticket is for another worker.",
    Refusal.WRONG_OBJECT: "The ticket is for another object.",
    Refusal.WRONG_KIND: "The ticket does not allow this.",
    Refusal.EXPIRED: "The ticket has expired.",
    Refusal.NOT_YET_VALID: "The ticket is not valid yet.",
    Refusal.LIVES_TOO_LONG: "The ticket would live longer than a ticket may.",
    Refusal.OUT_OF_RANGE: "The ticket does not cover all of these bytes.",
    Refusal.USED_UP: "The ticket was used for as many bytes as it may be.",
}


class Refused(Exception):
    """A request that is refused. status: HTTP's; code: stable, for programs."""

    def __init__(self, status: HTTPStatus, code: str, detail: str, headers: Headers = ()) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.detail = detail
        self.headers = headers


def not_found() -> Refused:
    """Refuse a path that is not one of a worker's."""
    return Refused(HTTPStatus.NOT_FOUND, "not_found", "There is nothing at this path.")


def not_held() -> Refused:
    """Refuse a read of an object that is not here."""
    return Refused(HTTPStatus.NOT_FOUND, "object_not_held", "This worker does not hold the object.")


def method_not_allowed(allowed: str) -> Refused:
    """Refuse a method that the path does not know."""
    return Refused(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "method_not_allowed",
        f"Use one of {allowed}.",
        (("allow", allowed),),
    )


def ticket_refused(refused: TicketRefused) -> Refused:
    """Refuse a ticket with the reason, which tells its holder nothing new."""
    return Refused(HTTPStatus.FORBIDDEN, refused.code, TICKET_DETAILS[refused.code])


def unavailable(code: str, detail: str) -> Refused:
    """Refuse for the moment."""
    return Refused(HTTPStatus.SERVICE_UNAVAILABLE, code, detail, (("retry-after", "1"),))


def node_removed() -> Refused:
    """Refuse everything, since the brain took this node out."""
    return Refused(HTTPStatus.GONE, "node_removed", "This node was removed from the cache.")


def no_space() -> Refused:
    return Refused(
        HTTPStatus.INSUFFICIENT_STORAGE, "store_full", "There is no room for the object here."
    )
