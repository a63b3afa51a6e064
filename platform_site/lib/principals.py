"""The caller of a request and the scope it acts in, as values independent of models."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.http import HttpRequest

from platform_site.lib.errors import ApiKeyForbidden, Forbidden, PlatformError


@dataclass(frozen=True, slots=True)
class Scope:
    """One environment of one organization: the only place a request may touch."""

    organization_id: int
    environment_pk: int


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller, read in the request's one query.

    kind: ``user`` (a session), ``key`` (an API key, which acts for no user), or ``dev`` (a
    development token: a synthetic admin without a user).
    environment_id: the immutable slug, as ``live``; environment_pk: its row.
    aal: authenticator assurance level, 1 or 2 (NIST SP 800-63B-4). amr: RFC 8176 method names.
    auth_time, mfa_time, access_expires_at: Unix seconds, None where there is no such thing:
    mfa_time is the latest proof of a second factor in this session.
    pending_id, pending_use: only for kind ``pending``, a sign-in whose second factor is still due;
    it has no roles, and only views that name its use allow it.
    email_verified: whether the e-mail was proven, None where there is no user.
    key_id, key_name, scopes: of an API key; its roles count only as far as the scopes go. None and
    '' for every other caller.
    restriction: why only some views allow this session, '' for no restriction. ``second_factor``:
    the organization's policy asks for one that this session has not shown, and only the views that
    help to get one are open. ``email``: the account has no e-mail address any more, and only the
    views that add and verify another one are open.
    """

    kind: Literal["user", "key", "dev", "pending"]
    user_id: UUID | None
    email: str | None
    organization_id: int
    organization_name: str
    environment_pk: int
    environment_id: str
    environment_name: str
    roles: tuple[str, ...]
    labels: tuple[str, ...]
    session_id: UUID | None
    aal: int
    amr: tuple[str, ...]
    auth_time: int | None
    access_expires_at: int | None
    mfa_time: int | None = None
    pending_id: UUID | None = None
    pending_use: str = ""
    restriction: Literal["", "second_factor", "email"] = ""
    email_verified: bool | None = None
    key_id: UUID | None = None
    key_name: str = ""
    scopes: frozenset[str] | None = None

    is_authenticated = True

    @property
    def own_id(self) -> UUID:
        """The user's id.

        Raises Forbidden (403) for an API key and a development token, which have no user.
        """
        if self.user_id is None:
            raise self.has_no_user()
        return self.user_id

    def has_no_user(self) -> Forbidden:
        """Return the refusal of what only a user may do."""
        if self.kind == "key":
            return ApiKeyForbidden()
        return Forbidden("A development token has no user, so it has no profile to act on.")

    @property
    def actor_id(self) -> UUID | None:
        """The id of the user or of the API key; None for a development token."""
        return self.user_id or self.key_id

    @property
    def name(self) -> str:
        """The caller's name in notifications about what it did."""
        if self.user_id is not None:
            return self.email or "a member without an e-mail address"
        return f"the API key {self.key_name}" if self.kind == "key" else "a development token"

    @property
    def audit_name(self) -> str:
        """The caller's name in the audit trail."""
        if self.kind == "key":
            return f"API key {self.key_name}"
        return self.email or ("development token" if self.user_id is None else str(self.user_id))

    @property
    def environment(self) -> dict[str, str]:
        """The environment as responses show it."""
        return {"id": self.environment_id, "name": self.environment_name}

    @property
    def scope(self) -> Scope:
        """The environment that this principal acts in."""
        return Scope(self.organization_id, self.environment_pk)


class PlatformRequest(HttpRequest):
    """A request with the attributes that the middleware sets before a view runs.

    principal: None for an anonymous caller; principal_error is then the reason why the credentials
    sent were refused, if there were any. Views that need a principal raise it.
    """

    request_id: str
    principal: Principal | None
    principal_error: PlatformError | None
    scope: Scope | None
