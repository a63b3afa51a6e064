"""The parts of the dashboard, to which each feature adds."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse

from platform_site.staff.charts import Chart


@dataclass(frozen=True, slots=True)
class Card:
    """One figure. link: to the list with its rows."""

    title: str
    value: str
    note: str
    link: str


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem that staff has to check."""

    text: str
    link: str


@dataclass(slots=True)
class Board:
    """The content of the dashboard."""

    cards: list[Card]
    alerts: list[Alert]
    charts: list[Chart]
    regions: Sequence[dict[str, Any]] = ()


def link(name: str, query: str = "") -> str:
    """Return the path of a page of the admin."""
    return reverse(f"admin:{name}") + (f"?{query}" if query else "")


def clock(moments: Iterable[datetime]) -> list[str]:
    """Return the labels of a chart of one day (UTC)."""
    return [f"{moment:%H:%M}" for moment in moments]
