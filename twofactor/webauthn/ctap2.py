"""CBOR as authenticators write it (CTAP 2.1 §8): no tags, no indefinite lengths, few levels.

Checked before any other parser reads the bytes. A general parser resolves shared references (tags
28 and 29), and py_webauthn serializes the result again: 250 bytes then take seconds, and each
further ten bytes double the time.
"""

from typing import Final

# CTAP 2.1 §8 allows four; an attestation object wraps the authenticator's own in two.
MAX_DEPTH: Final = 6
_BYTES_AND_TEXT: Final = (2, 3)
_ARRAY: Final = 4
_MAP: Final = 5
_TAG: Final = 6
_FIRST_LONG: Final = 24
_LAST_LONG: Final = 27


def check(data: bytes, *, start: int = 0) -> None:
    """Raise ValueError unless all items from ``start`` on are canonical CTAP2 CBOR."""
    at = start
    while at < len(data):
        at = _end_of_item(data, at, depth=0)


def _end_of_item(data: bytes, at: int, *, depth: int) -> int:
    if depth > MAX_DEPTH:
        raise ValueError("nested too deep")
    major, value, at = _head(data, at)
    if major in _BYTES_AND_TEXT:
        at += value
    elif major in {_ARRAY, _MAP}:
        # Each item has at least one byte, so the loop ends with the data, not with the claimed
        # length.
        for _ in range(value * (2 if major == _MAP else 1)):
            at = _end_of_item(data, at, depth=depth + 1)
    if at > len(data):
        raise ValueError("cut short")
    return at


def _head(data: bytes, at: int) -> tuple[int, int, int]:
    """Return an item's major type, its number or length, and where its content begins."""
    if at >= len(data):
        raise ValueError("cut short")
    major, short = data[at] >> 5, data[at] & 0x1F
    if major == _TAG or short > _LAST_LONG:
        raise ValueError("no CTAP2 CBOR")
    if short < _FIRST_LONG:
        return major, short, at + 1
    size = 1 << (short - _FIRST_LONG)
    return major, int.from_bytes(data[at + 1 : at + 1 + size], "big"), at + 1 + size
