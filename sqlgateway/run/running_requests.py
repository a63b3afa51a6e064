"""Running SQL requests, and their cancellation from any process of the platform.

Every request is in the registry of its process. After PUBLISH_AFTER_S it also gets a row in the
control database; faster requests do not. To cancel a request (DELETE /v1/sql/{id}), another process
marks the row. The request's own process reads its rows four times a second, and cancels the query.
Only this process can do it safely: it knows whether the connection still runs that request, or
already another one.

The watchdog (sqlgateway/pg/watchdog.py) cancels requests at their deadline, and when their
client disconnects.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone

from common.ids import uuid7
from common.middleware import REQUEST_ID
from common.scoping import within
from sqlgateway import models
from sqlgateway.errors import RequestNotRunning
from sqlgateway.models import RunningSql
from sqlgateway.run.record_writer import WRITER
from sqlgateway.run.requests import Caller, SqlRequest
from sqlgateway.run.sql_text import redacted

PUBLISH_AFTER_S: Final = 0.25
# A row that was not renewed for this long belongs to a process that died.
EXPIRY_S: Final = 60
RENEW_S: Final = 15


class Cancellation:
    """Cancels one request, from any thread. is_requested: True once ``request`` was called."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._act: Callable[[], None] | None = None
        self.is_requested = False

    def request(self) -> None:
        """Cancel the request; it does not start if it has not started yet."""
        with self._lock:
            self.is_requested = True
            act = self._act
        if act is not None:
            act()

    def attach(self, act: Callable[[], None]) -> None:
        """Set the function that cancels the request; call it if that was requested before."""
        with self._lock:
            self._act = act
            is_due = self.is_requested
        if is_due:
            act()


@dataclass(eq=False, slots=True)
class RunningRequest:
    """A request that runs in this process. row_id: set once it has a row."""

    caller: Caller
    request_id: str
    request: SqlRequest
    cancellation: Cancellation = field(default_factory=Cancellation)
    began: float = field(default_factory=time.monotonic)
    row_id: UUID | None = None

    def row(self) -> RunningSql:
        """Return the request's row, unsaved."""
        caller, began_s = self.caller, time.monotonic() - self.began
        now = datetime.now(UTC)
        return RunningSql(
            id=self.row_id,
            organization_id=caller.scope.organization_id,
            environment_id=caller.scope.environment_pk,
            user_id=caller.user_id,
            actor=caller.name[:254],
            role=caller.role,
            request_id=self.request_id,
            text=redacted(self.request.text[: models.HISTORY_TEXT_CHARS]),
            at=now - timedelta(seconds=began_s),
            expires_at=now + timedelta(seconds=EXPIRY_S),
        )

    def is_readable_by(self, caller: Caller) -> bool:
        """True if it is the caller's own request, or the caller is an admin of its environment."""
        is_own = caller.user_id == self.caller.user_id
        return caller.scope == self.caller.scope and (is_own or caller.sees_all)


class RunningRequests:
    """The requests that run in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[RunningRequest] = set()
        self._ended: list[UUID] = []
        self._renewed_at = 0.0

    @contextmanager
    def track(self, running: RunningRequest) -> Iterator[None]:
        """Keep a request in the registry while the block runs."""
        with self._lock:
            self._running.add(running)
        WRITER.start()
        try:
            yield
        finally:
            with self._lock:
                self._running.remove(running)
                if running.row_id is not None:
                    self._ended.append(running.row_id)

    def find(self, caller: Caller, request_id: str) -> list[RunningRequest]:
        """Return the requests of this id that the caller may cancel."""
        with self._lock:
            found = [one for one in self._running if one.request_id == request_id]
        return [one for one in found if one.is_readable_by(caller)]

    def sync(self) -> None:
        """Synchronize with the control database: insert, renew and delete rows; cancel requests."""
        moment = time.monotonic() - PUBLISH_AFTER_S
        with self._lock:
            new = [one for one in self._running if one.row_id is None and one.began <= moment]
            for one in new:
                one.row_id = uuid7()
            ended, self._ended = self._ended, []
            published = {one.row_id: one for one in self._running if one.row_id is not None}
        rows = RunningSql.objects.all()
        if ended:
            rows.filter(pk__in=ended).delete()
        if new:
            rows.bulk_create([one.row() for one in new])
        if published:
            self._renew(list(published))
            marked = rows.filter(pk__in=list(published), is_cancelled=True)
            for row_id in marked.values_list("pk", flat=True):
                published[row_id].cancellation.request()

    def _renew(self, row_ids: list[UUID]) -> None:
        if time.monotonic() - self._renewed_at < RENEW_S:
            return
        self._renewed_at = time.monotonic()
        rows = RunningSql.objects.filter(pk__in=row_ids)
        rows.update(expires_at=timezone.now() + timedelta(seconds=EXPIRY_S))


def cancel(caller: Caller, request_id: str) -> None:
    """Cancel the running requests of this id, in any process.

    Raises RequestNotRunning (404), the same for unknown requests and those of others.
    """
    if REQUEST_ID.fullmatch(request_id) is None:
        raise RequestNotRunning
    here = REGISTRY.find(caller, request_id)
    for running in here:
        running.cancellation.request()
    elsewhere = readable_by(caller).filter(request_id=request_id).update(is_cancelled=True)
    if not here and not elsewhere:
        raise RequestNotRunning


def readable_by(caller: Caller) -> QuerySet[RunningSql]:
    """Return the rows of running requests that the caller may see, as ``is_readable_by``."""
    with within(caller.scope):
        rows: QuerySet[RunningSql] = RunningSql.objects.all()
    rows = rows.filter(expires_at__gt=timezone.now())
    return rows if caller.sees_all else rows.filter(user_id=caller.user_id)


def delete_expired() -> None:
    """Delete rows of processes that died."""
    rows = RunningSql.objects.all()
    rows.filter(expires_at__lt=timezone.now()).delete()


REGISTRY: Final = RunningRequests()


WRITER.add_job(REGISTRY.sync)
