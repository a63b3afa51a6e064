"""What an event says to people: who did what, to whom.

An event that affects a person has the person's id as ``member`` in its data, and the address at
that moment as ``email``; both are those of the event's own organization, or what its admin typed.
"""

from collections.abc import Mapping
from typing import Any, Final

from audit.models import AuditEvent
from audit.tags import AuditTag, known

OPERATOR: Final = "an operator of the platform"
PLATFORM: Final = "the platform"
# Actors that are nobody's name: commands and the platform's own work.
COMMAND: Final = "command"
NAMELESS: Final = ("", "platform")
MAX_VALUE_CHARS: Final = 80


def actor_of(event: AuditEvent) -> str:
    """Return who did it, by the name that people know."""
    if event.actor and event.actor not in {COMMAND, *NAMELESS}:
        return event.actor
    is_command = event.actor == COMMAND or event.tag.startswith("cli:")
    return OPERATOR if is_command else PLATFORM


def affected_of(event: AuditEvent) -> str:
    """Return the address of the person whom it affects, else the person's id, else ''."""
    return str(event.data.get("email") or event.data.get("member") or "")


def sentence_of(event: AuditEvent) -> str:
    """Return who did what, to whom; '' for a tag that no longer exists."""
    tag = known().get(event.tag)
    if tag is None:
        return ""
    who = actor_of(event)
    said = _phrase_of(tag, event)
    if said:
        return f"{who[0].upper() + who[1:] if who in {OPERATOR, PLATFORM} else who} {said}."
    return tag.sentence if who in {OPERATOR, PLATFORM} else f"{who}: {tag.sentence}"


def words_of(tag: AuditTag) -> str:
    """Return the words of a tag that are the same in all of its events, to search in."""
    return f"{tag.sentence} {tag.phrase if isinstance(tag.phrase, str) else ''}"


def _phrase_of(tag: AuditTag, event: AuditEvent) -> str:
    """Return what follows the actor; '' where there is no phrase, or data that it needs."""
    facts = {**event.data, "email": affected_of(event)}
    if callable(tag.phrase):
        said = tag.phrase(event.outcome, facts)
    else:
        said = tag.phrase if event.outcome == "success" else ""
    shown = {name: text for name, value in facts.items() if (text := _shown(value))}
    try:
        return said.format_map(shown)
    except KeyError:
        return ""


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ""
    text = " and ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
