"""Requests of a client, and what their answers say of the objects."""

import http.client
import json
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import ClassVar
from urllib.parse import urlsplit

from tests.edgecache.brain.history.model import Model, State, States, Upload, Version, version_of
from tests.edgecache.brain.s3.raw import Answer, Signer, md5, send
from tests.edgecache.cluster import Cluster

BUCKET = "docs"


class WrongAnswerError(AssertionError):
    """An answer that no order of the operations explains."""


class Outcome(Enum):
    """DONE: acknowledged. REFUSED: nothing changed. LOST: it may have happened or not."""

    DONE = auto()
    REFUSED = auto()
    LOST = auto()


@dataclass(frozen=True)
class Client:
    """A tenant's client."""

    cluster: Cluster
    signer: Signer

    def ask(
        self, method: str, target: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> Answer:
        """Send a signed request. Status 0: the answer was lost; its body is what had arrived."""
        try:
            return self.signer.send(method, f"/{BUCKET}{target}", body, headers)
        except http.client.IncompleteRead as exc:
            return Answer(0, {}, exc.partial)
        except (OSError, http.client.HTTPException):
            return Answer(0, {}, b"")

    def follow(self, answer: Answer) -> Answer:
        """Read from the worker that an answer redirects to."""
        place = urlsplit(answer.headers["location"])
        try:
            return send(f"http://{place.netloc}", "GET", f"{place.path}?{place.query}")
        except http.client.IncompleteRead as exc:
            return Answer(0, {}, exc.partial)
        except (OSError, http.client.HTTPException):
            return Answer(0, {}, b"")


def outcome_of(answer: Answer, *done: int, refused: tuple[int, ...] = ()) -> Outcome:
    """Return what a status means. Raises WrongAnswerError for one that is not expected."""
    if answer.status in done:
        return Outcome.DONE
    if answer.status in refused:
        return Outcome.REFUSED
    if answer.status == 0 or answer.status >= 500:
        return Outcome.LOST
    raise WrongAnswerError(f"{answer.status} {answer.code}")


@dataclass
class Operation(ABC):
    """A request.

    needs_room: on the brain's disk.
    key: the key that it writes, "" if none.
    """

    needs_room: ClassVar[bool] = False

    key: str = ""
    answer: Answer = field(default_factory=lambda: Answer(0, {}, b""), repr=False)

    def bind(self, model: Model) -> None:  # noqa: B027 - most requests know what they name
        """Choose what it names among what the model knows."""

    @abstractmethod
    def run(self, client: Client) -> None:
        """Send it and keep the answer."""

    def results(self, states: States) -> frozenset[State]:
        """Return the states of its key that it may lead to."""
        return frozenset()

    @abstractmethod
    def judge(self, states: States) -> Outcome:
        """Return what the answer means. states: of all keys while it ran.

        Raises WrongAnswerError.
        """

    def decide(self, model: Model) -> None:  # noqa: B027 - most answers decide nothing
        """Apply the answer to the model, if no other request was running."""

    def may_fail(self, model: Model, *, is_cut: bool, is_full: bool) -> bool:
        """Return True if an error has a reason.

        is_cut: the brain was killed during the request. is_full: its disk is full.
        """
        if self.answer.status == 0:
            return is_cut or self.is_harmed(model)
        return (is_full and self.needs_room and self.answer.status == 503) or self.is_harmed(model)

    def is_harmed(self, model: Model) -> bool:
        """Return True if altered bytes excuse an error."""
        return False


@dataclass
class Put(Operation):
    """A PUT. is_new: only if the object does not exist."""

    needs_room = True

    body: bytes = field(default=b"", repr=False)
    is_new: bool = False

    def run(self, client: Client) -> None:
        headers = {"if-none-match": "*"} if self.is_new else {}
        self.answer = client.ask("PUT", f"/{self.key}", self.body, headers)

    def results(self, states: States) -> frozenset[State]:
        return frozenset({version_of(self.body)})

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200, refused=(409, 412) if self.is_new else ())
        if outcome is Outcome.DONE and self.answer.headers["etag"] != version_of(self.body).etag:
            raise WrongAnswerError(self.answer.headers["etag"])
        if outcome is Outcome.DONE and self.is_new and None not in states[self.key]:
            raise WrongAnswerError("an object was there")
        if outcome is Outcome.REFUSED and states[self.key] == {None}:
            raise WrongAnswerError("no object was there")
        return outcome


@dataclass
class Delete(Operation):
    """A DELETE."""

    def run(self, client: Client) -> None:
        self.answer = client.ask("DELETE", f"/{self.key}")

    def results(self, states: States) -> frozenset[State]:
        return frozenset({None})

    def judge(self, states: States) -> Outcome:
        return outcome_of(self.answer, 204)


@dataclass
class Copy(Operation):
    """A copy on the server."""

    source: str = ""

    def run(self, client: Client) -> None:
        headers = {"x-amz-copy-source": f"/{BUCKET}/{self.source}"}
        self.answer = client.ask("PUT", f"/{self.key}", b"", headers)

    def results(self, states: States) -> frozenset[State]:
        etag = text_of(self.answer.body.decode(), "ETag") if self.answer.status == 200 else ""
        # A copy of what was uploaded in parts may have an ETag of its own.
        return frozenset(
            Version(state.body, etag)
            for state in states[self.source]
            if state is not None and (not etag or "-" in state.etag or state.has(etag))
        )

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200, refused=(404,))
        if self.answer.status == 404 and None not in states[self.source]:
            raise WrongAnswerError("the source was there")
        if outcome is Outcome.DONE and not self.results(states):
            raise WrongAnswerError("a copy of nothing")
        return outcome

    def is_harmed(self, model: Model) -> bool:
        return model.is_damaged(model.states[self.source])


@dataclass
class PutPart(Operation):
    """A part of an upload."""

    needs_room = True

    upload: Upload = field(default_factory=lambda: Upload("", ""))
    number: int = 1
    body: bytes = field(default=b"", repr=False)

    def run(self, client: Client) -> None:
        target = f"/{self.upload.key}?partNumber={self.number}&uploadId={self.upload.id}"
        self.answer = client.ask("PUT", target, self.body)

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200, refused=(404,) if self.upload.is_unsure else ())
        if outcome is Outcome.DONE:
            if self.answer.headers["etag"] != f'"{md5(self.body).hex()}"':
                raise WrongAnswerError(self.answer.headers["etag"])
            self.upload.parts[self.number] = self.body
        return outcome


@dataclass
class Complete(Operation):
    """The completion of an upload, with the acknowledged parts."""

    needs_room = True

    upload: Upload = field(default_factory=lambda: Upload("", ""))

    def run(self, client: Client) -> None:
        rows = "".join(
            f'<Part><PartNumber>{number}</PartNumber><ETag>"{md5(part).hex()}"</ETag></Part>'
            for number, part in sorted(self.upload.parts.items())
        )
        body = f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()
        self.answer = client.ask("POST", f"/{self.key}?uploadId={self.upload.id}", body)

    def results(self, states: States) -> frozenset[State]:
        return frozenset({self.upload.version})

    def judge(self, states: States) -> Outcome:
        # It may fail after the answer has begun.
        if self.answer.status == 200 and self.answer.code:
            return Outcome.LOST
        if self.upload.is_damaged and self.answer.code == "InvalidPart":
            return Outcome.REFUSED
        outcome = outcome_of(self.answer, 200, refused=(404,) if self.upload.is_unsure else ())
        etag = text_of(self.answer.body.decode(), "ETag")
        if outcome is Outcome.DONE and etag != self.upload.version.etag:
            raise WrongAnswerError(etag)
        return outcome

    def decide(self, model: Model) -> None:
        if self.judge(model.states) is Outcome.LOST:
            self.upload.is_unsure = True
        else:
            model.uploads.remove(self.upload)


@dataclass
class Purge(Operation):
    """A purge of the cache, by prefix."""

    prefix: str = ""

    def run(self, client: Client) -> None:
        keys = client.signer.keys
        tenant = {"organization_id": keys.organization_id, "environment_pk": keys.environment_pk}
        said: dict[str, object] = (
            {"prefix": f"{BUCKET}/{self.prefix}"} if self.prefix else {"all": True}
        )
        try:
            found = client.cluster.call("POST", "/v1/purge", tenant | said)
            self.answer = Answer(200, {}, json.dumps(found).encode())
        except (OSError, http.client.HTTPException):
            self.answer = Answer(0, {}, b"")

    def judge(self, states: States) -> Outcome:
        return outcome_of(self.answer, 200)


@dataclass
class Get(Operation):
    """A GET of everything, of a range, or from the worker that the brain names."""

    name: str = ""
    span: tuple[int, int] | None = None
    is_redirected: bool = False

    def run(self, client: Client) -> None:
        headers = {"range": "bytes={}-{}".format(*self.span)} if self.span else {}
        if self.is_redirected:
            headers["x-zonal-redirect"] = "1"
        self.answer = client.ask("GET", f"/{self.name}", b"", headers)
        if self.answer.status == 307:
            followed = client.follow(self.answer)
            # A worker's ETag is the hash.
            is_read = followed.status in {0, 200, 206}
            self.answer = Answer(followed.status if is_read else 0, {}, followed.body * is_read)

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200, 206, 404, 416)
        if not self._explained_by(states):
            raise WrongAnswerError("these bytes were not there")
        return outcome

    def decide(self, model: Model) -> None:
        if self.judge(model.states) is Outcome.DONE:
            model.states[self.name] = self._explained_by(model.states)

    def is_harmed(self, model: Model) -> bool:
        return self.is_redirected or model.is_damaged(model.states[self.name])

    def _explained_by(self, states: States) -> frozenset[State]:
        return frozenset(state for state in states[self.name] if self._fits(state))

    def _fits(self, state: State) -> bool:
        status, body = self.answer.status, self.answer.body
        if status >= 500:
            return True
        if state is None:
            return status == 404 or (status == 0 and not body)
        start, end = self.span or (0, len(state.body))
        wanted = state.body[start : end + 1]
        if status == 0:
            return wanted.startswith(body)
        if status == 416:
            return self.span is not None and start >= len(state.body)
        etag = self.answer.headers.get("etag")
        return status in {200, 206} and wanted == body and (etag is None or state.has(etag))


@dataclass
class List(Operation):
    """A listing of the bucket."""

    def run(self, client: Client) -> None:
        self.answer = client.ask("GET", "?list-type=2")

    def judge(self, states: States) -> Outcome:
        outcome = outcome_of(self.answer, 200)
        if outcome is Outcome.DONE and not all(self._explained_by(states).values()):
            raise WrongAnswerError(f"not in the listing: {self._explained_by(states)}")
        return outcome

    def decide(self, model: Model) -> None:
        if self.judge(model.states) is Outcome.DONE:
            model.states = self._explained_by(model.states)

    def _explained_by(self, states: States) -> States:
        rows = re.findall(r"<Contents>.*?</Contents>", self.answer.body.decode(), re.DOTALL)
        listed = {
            text_of(row, "Key"): (text_of(row, "ETag"), int(text_of(row, "Size"))) for row in rows
        }
        return {
            key: frozenset(state for state in found if _is_listed(state, listed.get(key)))
            for key, found in states.items()
        }


def text_of(row: str, element: str) -> str:
    """Return the text of an element, or nothing."""
    found = re.search(f"<{element}>(.*?)</{element}>", row)
    return found[1].replace("&quot;", '"') if found else ""


def _is_listed(state: State, row: tuple[str, int] | None) -> bool:
    if state is None or row is None:
        return state is None and row is None
    return state.has(row[0]) and len(state.body) == row[1]
