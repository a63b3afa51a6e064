"""What becomes of an origin's response to one request: kept, shared, or passed on alone."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from edgecache.brain.core.errors import OriginChanged, OriginFailed
from edgecache.brain.core.values import ObjectVersion
from edgecache.brain.http_caching import caching_rules
from edgecache.brain.http_caching.cache_keys import AUTHORIZATION, KeyPolicy, Target
from edgecache.brain.http_caching.caching_rules import StoredResponse
from edgecache.brain.objects.cacheability import Cacheability
from edgecache.brain.origins.driver import OriginResponse

CONFIRMED: Final = 304


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """Decides about the response to one request when its headers have arrived.

    sent: the client's headers that went to the origin.
    known: the names that the URL's Vary was known to have.
    stale: the version that a 304 confirms.
    stored: the stored response, fresh or stale.
    learn: called with the names that the response depends on.
    """

    policy: KeyPolicy
    target: Target
    sent: Mapping[str, str]
    known: tuple[str, ...]
    stale: ObjectVersion | None
    stored: StoredResponse | None
    asked_at: float
    learn: Callable[[tuple[str, ...]], None]

    def __call__(self, response: OriginResponse) -> Cacheability:
        """Return the decision.

        Raises OriginFailed for an unusable response, and for an error that the stored response
        replaces; OriginChanged for a 304 that confirms another response.
        """
        if response.status == CONFIRMED and self.stale is not None and self.stored is not None:
            return self._confirmed(response, self.stale, self.stored)
        if response.status < 200 or response.status == CONFIRMED:
            sentence = f"The origin answered {response.status} to a plain GET."
            raise OriginFailed(sentence, cause=f"status-{response.status}")
        if self._is_replaced(response):
            sentence = f"The origin answered {response.status}."
            raise OriginFailed(sentence, cause=f"status-{response.status}")
        return self._judged(response)

    def _confirmed(
        self, response: OriginResponse, stale: ObjectVersion, stored: StoredResponse
    ) -> Cacheability:
        if not caching_rules.confirms(stored, response.raw):
            raise OriginChanged
        renewed = caching_rules.renewed(
            stored, response.raw, asked_at=self.asked_at, answered_at=time.time()
        )
        kept = stored if renewed is None else replace(renewed, vary=stored.vary)
        return Cacheability(
            is_stored=renewed is not None, variant=stale.variant, http=kept.as_json()
        )

    def _is_replaced(self, response: OriginResponse) -> bool:
        """True if the stored response takes the place of an error (RFC 5861 §4)."""
        return (
            response.status in caching_rules.ERRORS
            and self.stored is not None
            and caching_rules.serves_on_error(self.stored, now=time.time())
        )

    def _judged(self, response: OriginResponse) -> Cacheability:
        status, headers, now = response.status, response.raw, time.time()
        names = self.policy.names(headers)
        self.learn(names)
        has_credentials = AUTHORIZATION in self.sent
        kept = caching_rules.judge(
            headers,
            asked_at=self.asked_at,
            answered_at=now,
            status=status,
            has_credentials=has_credentials,
        )
        found = kept or caching_rules.described(
            headers, asked_at=self.asked_at, answered_at=now, status=status
        )
        is_for_all = caching_rules.is_for_all(status, headers, has_credentials=has_credentials)
        if is_for_all:
            found = caching_rules.without_cookies(found)
        return Cacheability(
            is_stored=kept is not None and caching_rules.is_useful(kept),
            # A response that varies on more than was known cannot be shared.
            is_shared=is_for_all and set(names) <= set(self.known),
            variant=self.policy.variant(self.target, self.sent, names),
            http=replace(found, vary=names).as_json(),
        )
