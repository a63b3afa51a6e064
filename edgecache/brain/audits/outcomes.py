"""How a look travels, and what it finds."""

from enum import StrEnum


class Path(StrEnum):
    """How bytes travel: to a client itself, or through the brain to one."""

    DIRECT = "direct"
    FORWARDED = "forwarded"


class Outcome(StrEnum):
    """What came: the bytes, other bytes, a 404, or nothing of use."""

    RIGHT = "right"
    WRONG = "wrong"
    MISSING = "missing"
    UNANSWERED = "unanswered"
