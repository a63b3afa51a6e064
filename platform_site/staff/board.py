"""The parts of the dashboard, to which each feature adds: cards, alerts, and unfold's charts."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from django.urls import reverse

Colour = Literal["primary", "quiet", "bad", "good"]
COLOURS: Final[dict[Colour, str]] = {
    "primary": "var(--color-primary-600)",
    "quiet": "var(--color-base-400)",
    "bad": "#dc2626",
    "good": "#059669",
}


@dataclass(frozen=True, slots=True)
class Series:
    """One line or row of bars. None is a gap."""

    label: str
    colour: Colour
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart. summary: the same in words, for screen readers."""

    title: str
    summary: str
    kind: Literal["line", "bar"]
    labels: Sequence[str]
    series: Sequence[Series]
    suffix: str = ""

    @property
    def is_empty(self) -> bool:
        """True if there is no data."""
        return not any(value for each in self.series for value in each.values)

    @property
    def template(self) -> str:
        """Return the template of unfold's component."""
        return f"unfold/components/chart/{self.kind}.html"

    @property
    def legend(self) -> list[dict[str, str]]:
        """Return the names of the series with their colours."""
        return [{"label": each.label, "colour": each.colour} for each in self.series]

    @property
    def data(self) -> str:
        """Return the data for unfold's component."""
        datasets = [self._dataset(each) for each in self.series]
        return json.dumps({"labels": list(self.labels), "datasets": datasets})

    def _dataset(self, each: Series) -> dict[str, Any]:
        return {
            "label": each.label,
            "data": list(each.values),
            "borderColor": COLOURS[each.colour],
            "backgroundColor": COLOURS[each.colour],
            # A line has no points, but where there is nothing to connect one with.
            "pointStyle": "circle",
            "pointRadius": [3 if is_lone else 0 for is_lone in _lone(each.values)],
            "displayYAxis": True,
            "suffixYAxis": self.suffix,
            "maxTicksXLimit": 8,
        }


@dataclass(frozen=True, slots=True)
class Card:
    """One figure, or none: then the note is the link's text. link: to the list with its rows."""

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


def _lone(values: Sequence[float | None]) -> list[bool]:
    """Return for each value if it has a gap, or an end, on both of its sides."""
    known = [False, *(value is not None for value in values), False]
    return [
        has_value and not before and not after
        for before, has_value, after in zip(known, known[1:], known[2:], strict=False)
    ]


def link(name: str, query: str = "") -> str:
    """Return the path of a page of the admin."""
    return reverse(f"admin:{name}") + (f"?{query}" if query else "")


def clock(moments: Iterable[datetime]) -> list[str]:
    """Return the labels of a chart of one day (UTC)."""
    return [f"{moment:%H:%M}" for moment in moments]
