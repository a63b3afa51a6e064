"""Finding an answer for a URL: kept and good, kept and confirmed, or fetched."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import structlog

from edgecache.brain.cdn import rules, statuses
from edgecache.brain.cdn.rules import Kept, Use
from edgecache.brain.cdn.vary import Vary
from edgecache.brain.directory.index import Name
from edgecache.brain.errors import BrainError, OriginChanged, OriginError, OriginMissing
from edgecache.brain.fetch.objects import Opened
from edgecache.brain.fetch.singleflight import Ask, Flight, Verdict
from edgecache.brain.origins.driver import Answer, Question
from edgecache.brain.values import BucketInfo, Found, check_key

if TYPE_CHECKING:
    from edgecache.brain.directory.directory import Directory
    from edgecache.brain.fetch.objects import Fills

log = structlog.get_logger(__name__)

CONFIRMED = 304
# How often one asks together with others whose answer turns out to be of another kind.
COMPANIES: Final = 3


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a client asks for. fields: of its request, lower-case names."""

    bucket: BucketInfo
    key: str
    query: str
    fields: Mapping[str, str]
    only_if_cached: bool = False


@dataclass(frozen=True, slots=True)
class Looked:
    """An answer, and how it was come by. kept: None for what may be kept by nobody."""

    opened: Opened
    kept: Kept | None
    cache_status: str


class NotCached(Exception):
    """The client wants a kept answer only, and there is none (RFC 9111 §5.2.1.7)."""


class Looking:
    """The way to an answer. Refreshes that run behind answers belong to it, too."""

    def __init__(self, fills: "Fills", directory: "Directory") -> None:
        self._fills = fills
        self._directory = directory
        self._vary = Vary()
        # One of each at a time, however many are answered meanwhile.
        self._behind: dict[Name, asyncio.Task[Any]] = {}

    async def look(self, wanted: Wanted) -> Looked:
        """Give an answer.

        Raises NotCached, OriginMissing, OriginError's kinds, BrainError.
        """
        found = await self._find(wanted)
        if found is None:
            return await self.fetch(wanted)
        kept = Kept.of_json(found.http) if found.http else None
        now = time.time()
        if kept is None:
            # Of an origin that knows objects alone: good until it is purged.
            opened = Opened(self._fills, wanted.bucket, found)
            return Looked(opened, None, f"{statuses.NAME}; hit")
        ttl_s = kept.lifetime_s - rules.age_s(kept, now=now)
        use = rules.use(kept, now=now)
        if use is Use.REVALIDATE and not wanted.only_if_cached:
            return await self._confirm(wanted, found, kept)
        if use is Use.REVALIDATE:
            raise NotCached
        if use is Use.STALE_WHILE_REVALIDATE:
            self._refresh(wanted, found, kept)
        return Looked(Opened(self._fills, wanted.bucket, found), kept, statuses.hit(ttl_s=ttl_s))

    async def stop(self) -> None:
        """Give up what runs behind answers."""
        tasks = tuple(self._behind.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _find(self, wanted: Wanted) -> Found | None:
        bucket_id, key = wanted.bucket.id, check_key(wanted.key)
        names = self._vary.of(bucket_id, key, wanted.query)
        variant = rules.variant(wanted.query, names, wanted.fields)
        found = await self._directory.find(bucket_id, key, variant)
        while found is None and variant != self._variant(wanted):
            # That it varies was learned meanwhile, from an answer that may be of this kind.
            variant = self._variant(wanted)
            found = await self._directory.find(bucket_id, key, variant)
        names = self._vary.of(bucket_id, key, wanted.query)
        if found is None or not found.http or set(found.http["vary"]) <= set(names):
            return found
        # Kept by a reader of objects, for whom there is one of each: it varies, this brain learns.
        self._vary.learn(bucket_id, key, wanted.query, tuple(found.http["vary"]))
        variant = rules.variant(wanted.query, found.http["vary"], wanted.fields)
        return await self._directory.find(bucket_id, key, variant)

    async def fetch(self, wanted: Wanted) -> Looked:
        """Ask the origin, whatever is kept.

        Raises as ``look`` does.
        """
        if wanted.only_if_cached:
            raise NotCached
        ask = self._ask(wanted, None, None)
        opened = await self._answer_to(wanted, ask)
        return self._looked(wanted, opened, ask, why="uri-miss")

    async def _confirm(self, wanted: Wanted, found: Found, kept: Kept) -> Looked:
        ask = self._ask(wanted, found, kept)
        try:
            opened = await self._answer_to(wanted, ask)
        except OriginMissing:
            raise
        except OriginChanged:
            # Something hit the key before the confirmation was noted: a purge, or who asked later.
            return await self.fetch(wanted)
        except OriginError as exc:
            if not rules.serves_on_error(kept, now=time.time()):
                raise
            log.info("stale_answer_served", bucket_id=wanted.bucket.id, error=type(exc).__name__)
            stale = Opened(self._fills, wanted.bucket, found)
            return Looked(stale, kept, statuses.failed("stale-if-error"))
        return self._looked(wanted, opened, ask, why="stale")

    async def _answer_to(self, wanted: Wanted, ask: Ask) -> Opened:
        """Fetch, together with who asks the same; alone where such answers are for nobody else.

        Raises as ``Fills.fetch``.
        """
        bucket, key = wanted.bucket, wanted.key
        for _ in range(COMPANIES):
            opened = await self._fills.fetch(bucket, key, variant=self._variant(wanted), ask=ask)
            flight = opened.flight
            if flight is None or flight.ask is ask or flight.verdict.is_shared:
                return opened
            if not flight.verdict.is_stored:
                break
            # Of one kind, it is good for all who want that kind.
            self._vary.learn(bucket.id, key, wanted.query, tuple(flight.verdict.http["vary"]))
            if flight.verdict.variant == self._variant(wanted):
                return opened
            kept = await self._kept_since(wanted, flight)
            if kept is not None:
                return kept
        variant = self._variant(wanted)
        return await self._fills.fetch(bucket, key, variant=variant, ask=ask, alone=True)

    async def _kept_since(self, wanted: Wanted, flight: Flight) -> Opened | None:
        """Give what another fetch brought of the wanted kind since one began."""
        found = await self._directory.find(wanted.bucket.id, wanted.key, self._variant(wanted))
        if found is None or flight.began is None or found.generation < flight.began:
            return None
        return Opened(self._fills, wanted.bucket, found)

    def _variant(self, wanted: Wanted) -> str:
        names = self._vary.of(wanted.bucket.id, wanted.key, wanted.query)
        return rules.variant(wanted.query, names, wanted.fields)

    def _ask(self, wanted: Wanted, stale: Found | None, kept: Kept | None) -> Ask:
        asked_at = time.time()
        conditions = rules.conditions(kept) if kept is not None else []
        known = self._vary.of(wanted.bucket.id, wanted.key, wanted.query)

        def judge(answer: Answer) -> Verdict:
            answered_at = time.time()
            if answer.status == CONFIRMED and kept is not None:
                judged = rules.renewed(kept, answer.raw, asked_at=asked_at, answered_at=answered_at)
                return Verdict(
                    variant=stale.variant if stale else "",
                    http=(judged or kept).as_json(),
                )
            judged = rules.judge(answer.raw, asked_at=asked_at, answered_at=answered_at)
            if judged is None:
                return Verdict(is_stored=False, is_shared=False)
            self._vary.learn(wanted.bucket.id, wanted.key, wanted.query, judged.vary)
            return Verdict(
                # An answer that varies on more than was known is for who asked alone.
                is_shared=set(judged.vary) <= set(known),
                variant=rules.variant(wanted.query, judged.vary, wanted.fields),
                http=judged.as_json(),
            )

        question = Question(
            headers=[*rules.passed_on(wanted.fields), *conditions],
            query=wanted.query,
            accepts=frozenset({CONFIRMED}) if conditions else frozenset(),
        )
        return Ask(question, stale=stale if conditions else None, judge=judge, joins=_comes_in_time)

    def _looked(self, wanted: Wanted, opened: Opened, ask: Ask, *, why: str) -> Looked:
        found, flight = opened.found, opened.flight
        kept = Kept.of_json(found.http) if found.http else None
        is_confirmed = bool(found.sha256) and ask.stale is not None
        status = statuses.forwarded(
            why,
            stored=flight is None or flight.verdict.is_stored,
            status=CONFIRMED if is_confirmed else None,
            collapsed=flight is not None and flight.ask is not ask,
        )
        return Looked(opened, kept, status)

    def _refresh(self, wanted: Wanted, found: Found, kept: Kept) -> None:
        name = (found.bucket_id, found.key, found.variant)
        if name in self._behind:
            return
        task = asyncio.create_task(self._confirm(wanted, found, kept))
        self._behind[name] = task
        task.add_done_callback(partial(self._ended, name))

    def _ended(self, name: Name, task: asyncio.Task[Any]) -> None:
        del self._behind[name]
        if not task.cancelled() and isinstance(task.exception(), BrainError):
            log.info("refresh_failed", error=type(task.exception()).__name__)


def _comes_in_time(flight: Flight) -> bool:
    """Tell whether a fetch under way answers who asks now.

    One whose answer came before is not over until its bytes are kept; by then the origin may say
    something else, and where the answer wants to be confirmed (max-age=0) it has to be asked.
    """
    answer = flight.verdict.http or (flight.kept.http if flight.kept is not None else {})
    return not answer or rules.use(Kept.of_json(answer), now=time.time()) is not Use.REVALIDATE
