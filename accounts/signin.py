"""The end of every way in: a proven user gets a session and its tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts import audit, credentials, sessions, tokens
from accounts.models import Session, User
from accounts.sessions import Origin
from environments import lifecycle
from environments.errors import EnvironmentNotFound
from environments.models import Environment
from platform_site.lib.addresses import client_address
from platform_site.lib.principals import PlatformRequest


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session just opened or carried on, with all that its answer needs."""

    session: Session
    environment: Environment

    def as_json(self) -> dict[str, Any]:
        """Give the token pair with ``environment``."""
        place = {"id": self.environment.slug, "name": self.environment.name}
        return tokens.pair_for(self.session, self.environment).as_json() | {"environment": place}


def origin_of(request: PlatformRequest) -> Origin:
    """Give where a request came from, as a session keeps it."""
    agent = request.headers.get("User-Agent", "").replace("\0", "")
    return Origin(client_address(request), agent)


def environment_for(user: User, wanted: str) -> Environment:
    """Give the environment to sign in to: the wanted one, else the last used, else ``live``.

    Raises EnvironmentNotFound for a wanted one that is not there.
    """
    if wanted:
        return lifecycle.find(user.organization_id, wanted)
    last: Environment | None = user.last_environment
    if last is not None and last.deleted_at is None:
        return last
    return lifecycle.find(user.organization_id, "live")


def finish(
    request: PlatformRequest, user: User, *, environment: str, amr: Sequence[str], now: datetime
) -> SignedIn:
    """Open the session of a proven user.

    environment: id or name, empty for the user's last one. amr: how the user was proven.
    Raises EnvironmentNotFound.
    """
    try:
        place = environment_for(user, environment)
    except EnvironmentNotFound:
        audit.record_user(request, "api:session:create", user, outcome="refused")
        raise
    session = sessions.open_session(user, place, amr=amr, aal=1, origin=origin_of(request), now=now)
    audit.record_user(
        request, "api:session:create", user, session=str(session.id), environment=place.slug
    )
    return SignedIn(session, place)


def note_refused(request: PlatformRequest, email: str) -> None:
    """Note a refused login; for an unknown address too, so that both take the same time."""
    user = credentials.find(email)
    audit.add(
        request,
        "api:session:create",
        outcome="refused",
        organization_id=user.organization_id if user else None,
        actor_id=user.pk if user else None,
        actor=user.email if user else "",
    )
