"""Requests about the versions of objects, and what their answers say of them.

An id names the same bytes for ever, or a delete marker, until it is deleted.
"""

import re
from dataclasses import dataclass, field

from tests.edgecache.brain.history.model import Model, State, States, Version
from tests.edgecache.brain.history.operations import (
    BUCKET,
    Client,
    Operation,
    Outcome,
    WrongAnswerError,
    outcome_of,
    text_of,
)

NULL = "null"


@dataclass
class OfVersion(Operation):
    """A request about one version. pick: which of the known ones; possible: what it may be."""

    name: str = ""
    pick: int = 0
    version: str = field(default="0" * 32, repr=False)
    possible: frozenset[State] = field(default=frozenset(), repr=False)
    may_be_gone: bool = field(default=True, repr=False)

    def bind(self, model: Model) -> None:
        known = sorted(model.kept)
        if known:
            self.name, self.version = known[self.pick % len(known)]
            self.possible = model.kept[self.name, self.version]
            self.may_be_gone = self.version in model.gone

    @property
    def target(self) -> str:
        """Return the path with the version."""
        return f"/{self.name}?versionId={self.version}"

    def is_harmed(self, model: Model) -> bool:
        return model.is_damaged(self.possible)


@dataclass
class GetVersion(OfVersion):
    """A GET of a version."""

    def run(self, client: Client) -> None:
        self.answer = client.ask("GET", self.target)

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200, 404, 405)
        if outcome is Outcome.DONE and not self._is_explained():
            raise WrongAnswerError("that is not what the version was")
        return outcome

    def _is_explained(self) -> bool:
        if self.answer.status == 404:
            return self.may_be_gone
        if self.answer.status == 405:
            return None in self.possible
        etag = self.answer.headers["etag"]
        return any(
            state is not None and state.body == self.answer.body and state.has(etag)
            for state in self.possible
        )

    def decide(self, model: Model) -> None:
        if self.answer.status in {200, 405}:
            model.gone.discard(self.version)
        elif self.answer.status == 404:
            model.kept.pop((self.name, self.version), None)


@dataclass
class DeleteVersion(OfVersion):
    """A DELETE of a version: the one below it may be current afterwards."""

    def bind(self, model: Model) -> None:
        super().bind(model)
        self.key = self.name
        self._known = model.ever[self.name]
        model.gone.add(self.version)

    def run(self, client: Client) -> None:
        self.answer = client.ask("DELETE", self.target)

    def results(self, states: States) -> frozenset[State]:
        return self._known | states[self.name] | {None}

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 204)
        if outcome is Outcome.DONE and self.answer.headers["x-amz-version-id"] != self.version:
            raise WrongAnswerError("another version")
        return outcome


@dataclass
class Restore(OfVersion):
    """A copy of a version to its own key."""

    def bind(self, model: Model) -> None:
        super().bind(model)
        self.key = self.name

    def run(self, client: Client) -> None:
        headers = {"x-amz-copy-source": f"/{BUCKET}{self.target}"}
        self.answer = client.ask("PUT", f"/{self.key}", b"", headers)

    def results(self, states: States) -> frozenset[State]:
        etag = text_of(self.answer.body.decode(), "ETag") if self.answer.status == 200 else ""
        return frozenset(
            Version(state.body, etag)
            for state in self.possible
            if state is not None and (not etag or "-" in state.etag or state.has(etag))
        )

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200, refused=(400, 404))
        if self.answer.status == 404 and not self.may_be_gone:
            raise WrongAnswerError("the version was there")
        if self.answer.status == 400 and None not in self.possible:
            raise WrongAnswerError("the version was no marker")
        if outcome is Outcome.DONE and not self.results(states):
            raise WrongAnswerError("a copy of nothing")
        return outcome


@dataclass
class ListVersions(Operation):
    """A listing of all versions, by itself: it decides which exist, and which are current."""

    model: Model = field(default_factory=Model, repr=False)

    def bind(self, model: Model) -> None:
        self.model = model

    def run(self, client: Client) -> None:
        self.answer = client.ask("GET", "?versions")

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200)
        if outcome is Outcome.DONE:
            self._check()
        return outcome

    def decide(self, model: Model) -> None:
        if self.judge(model.states) is not Outcome.DONE:
            return
        rows = self._rows()
        there = {(row.key, row.version) for row in rows}
        model.kept = {name: states for name, states in model.kept.items() if name in there}
        model.gone.clear()
        latest = {row.key: row for row in rows if row.is_latest}
        for key, states in model.states.items():
            row = latest.get(key)
            model.states[key] = frozenset(
                state for state in states if (row.fits(state) if row else state is None)
            )

    def _check(self) -> None:
        model, rows = self.model, self._rows()
        there = {(row.key, row.version): row for row in rows}
        for name, states in model.kept.items():
            row = there.get(name)
            if row is None and name[1] not in model.gone:
                raise WrongAnswerError(f"a version is lost: {name}")
            if row is not None and not any(map(row.fits, states)):
                raise WrongAnswerError(f"another version: {row}")
        for row in rows:
            is_known = (row.key, row.version) in model.kept or row.version == NULL
            if not is_known and not any(map(row.fits, model.lost[row.key])):
                raise WrongAnswerError(f"no write made {row}")
        for key, states in model.states.items():
            mine = [row for row in rows if row.key == key]
            if [row.is_latest for row in mine] != [True, *[False] * len(mine)][: len(mine)]:
                raise WrongAnswerError(f"the newest of {key} is not the first one")
            if not any(mine[0].fits(state) if mine else state is None for state in states):
                raise WrongAnswerError(f"not what {key} is: {mine[:1]}, {states}")
            ages = [model.ages[row.version] for row in mine if row.version in model.ages]
            if ages != sorted(ages, reverse=True):
                raise WrongAnswerError(f"the versions of {key} are not in order")

    def _rows(self) -> "list[Row]":
        pattern = r"<(Version|DeleteMarker)>(.*?)</\1>"
        found = re.findall(pattern, self.answer.body.decode(), re.DOTALL)
        return [
            Row(
                text_of(row, "Key"),
                text_of(row, "VersionId"),
                text_of(row, "IsLatest") == "true",
                text_of(row, "ETag"),
                int(text_of(row, "Size") or -1),
            )
            for _, row in found
        ]


@dataclass(frozen=True)
class Row:
    """A line of the listing. size: -1 for a delete marker."""

    key: str
    version: str
    is_latest: bool
    etag: str
    size: int

    def fits(self, state: State) -> bool:
        """Return True if this may be the state's line."""
        if state is None:
            return self.size < 0
        return state.has(self.etag) and len(state.body) == self.size
