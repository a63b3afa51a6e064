"""The caller of a request and its scope, as values independent of models."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from django.http import HttpRequest

from common.errors import ApiKeyForbidden, Forbidden, PlatformError


@dataclass(frozen=True, slots=True)
class Scope:
    """One environment of one organization: the only data that a request may access."""

    organization_id: int
    environment_pk: int


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    kind: ``user`` (a session), ``key`` (an API key, which acts for no user), or ``dev`` (a
    development token: a synthetic admin without a user).
    environment_id: the immutable slug, such as ``live``; environment_pk: its row's key.
    aal: authenticator assurance level, 1 or 2 (NIST SP 800-63B-4). amr: RFC 8176 method names.
    auth_time, mfa_time, access_expires_at: Unix seconds, None if not applicable; mfa_time is the
    latest proof of a second factor in this session.
    pending_id, pending_use: only for kind ``pending``, a sign-in whose second factor is missing; it
    has no roles, and only views that name its use allow it.
    email_verified: None without a user.
    key_id, key_name, scopes: of an API key, whose roles are limited by the scopes; None and '' for
    other callers.
    restriction: why only some views allow this session, '' for no restriction. ``second_factor``:
    the organization's policy requires one that this session has not proven; only views to set one
    up are allowed. ``email``: the account lost its e-mail address; only views to add and verify
    another one are allowed.
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
        """Return the error of an action that only users may do."""
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
        """The environment in responses."""
        return {"id": self.environment_id, "name": self.environment_name}

    @property
    def scope(self) -> Scope:
        """The scope that this principal acts in."""
        return Scope(self.organization_id, self.environment_pk)


class PlatformRequest(HttpRequest):
    """A request with the attributes that the middleware sets before a view runs.

    principal: None for an anonymous caller; principal_error is then the error of refused
    credentials, if any were sent. Views that need a principal raise it.
    """

    request_id: str
    principal: Principal | None
    principal_error: PlatformError | None
