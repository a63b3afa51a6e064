"""Permissions: one table of role × resource × action, and the class that enforces it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeGuard, get_args

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from common.errors import (
    ApiKeyForbidden,
    EmailRequired,
    Forbidden,
    MethodNotAllowed,
    NotAuthenticated,
    SecondFactorDue,
    TokenInvalid,
)
from common.principals import Principal
from common.provided import Provided

Role = Literal["admin", "operator", "reader"]
Action = Literal["create", "read", "update", "delete"]
Resource = Literal[
    "sql",
    "objects",
    "schema",
    "environments",
    "members",
    "policy",
    "nodes",
    "buckets",
    "audit",
    "billing",
    "organization",
    "api_keys",
    "webhooks",
]
# The scopes of API keys: a resource of the table, to read or also to change.
Scope = Literal[
    "sql:read",
    "sql:write",
    "schema:write",
    "objects:read",
    "objects:write",
    "buckets:read",
    "buckets:write",
    "nodes:read",
    "environments:read",
]
ROLES: Final[tuple[Role, ...]] = get_args(Role)
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
ALL: Final = frozenset(ACTIONS)
READ: Final[frozenset[Action]] = frozenset({"read"})
NONE: Final[frozenset[Action]] = frozenset()
# Data: sql (rows) and objects. All rows below are configuration (schema means DDL).
TABLE: Final[Mapping[Resource, Mapping[Role, frozenset[Action]]]] = {
    "sql": {"admin": ALL, "operator": ALL, "reader": READ},
    "objects": {"admin": ALL, "operator": ALL, "reader": READ},
    "schema": {"admin": ALL, "operator": READ, "reader": NONE},
    "environments": {"admin": ALL, "operator": READ, "reader": NONE},
    "members": {"admin": ALL, "operator": READ, "reader": NONE},
    "policy": {"admin": ALL, "operator": READ, "reader": NONE},
    "nodes": {"admin": ALL, "operator": READ, "reader": NONE},
    "buckets": {"admin": ALL, "operator": READ, "reader": NONE},
    "audit": {"admin": ALL, "operator": READ, "reader": NONE},
    "billing": {"admin": ALL, "operator": READ, "reader": NONE},
    "organization": {"admin": ALL, "operator": READ, "reader": NONE},
    "api_keys": {"admin": ALL, "operator": READ, "reader": NONE},
    "webhooks": {"admin": ALL, "operator": READ, "reader": NONE},
}
# Scopes for what every member may read; keys of any role may have them.
OPEN_SCOPES: Final = frozenset({"nodes:read", "environments:read"})
# The scopes that the database role with this name requires. DDL is possible in SQL only: the paths
# under `schema` reach every environment, and a key reaches one.
DATABASE_SCOPES: Final[Mapping[Role, frozenset[str]]] = {
    "admin": frozenset({"sql:write", "schema:write"}),
    "operator": frozenset({"sql:write"}),
    "reader": frozenset({"sql:read"}),
}


class AccessRule(NamedTuple):
    """The requirements of one HTTP method of a view.

    kind: ``public`` (anyone), ``member`` (any principal), ``user`` (a user's session, so no
    development token), ``permission`` (the table decides).
    """

    kind: Literal["public", "member", "user", "permission"]
    resource: Resource | None = None
    action: Action | None = None
    pending: tuple[str, ...] = ()
    is_fresh: bool = False
    is_always_open: bool = False
    is_open_without_email: bool = False
    is_open_to_oneself: bool = False
    key_scope: Scope | Literal["any", ""] = ""
    is_closed_to_keys: bool = False

    def fresh(self) -> "AccessRule":
        """Also require a proof of identity at most 15 minutes old (step-up)."""
        return self._replace(is_fresh=True)

    def or_pending(self, *uses: str) -> "AccessRule":
        """Also allow a pending sign-in, for these uses."""
        return self._replace(pending=uses, is_always_open=True)

    def always(self) -> "AccessRule":
        """Also allow sessions that the policy on second factors restricts."""
        return self._replace(is_always_open=True)

    def without_email(self) -> "AccessRule":
        """Also allow a session whose account has no e-mail address and has to add one."""
        return self._replace(is_open_without_email=True)

    def or_oneself(self) -> "AccessRule":
        """Also allow the user whose id is the path's ``user_id``, whatever its roles."""
        return self._replace(is_open_to_oneself=True)

    def for_keys(self, scope: Scope | Literal["any"] = "any") -> "AccessRule":
        """Also allow API keys with the scope; ``permission`` requires the scope of its own cell."""
        return self._replace(key_scope=scope)

    def without_keys(self) -> "AccessRule":
        """Refuse all API keys: for actions that concern more than one environment."""
        return self._replace(is_closed_to_keys=True)


PUBLIC: Final = AccessRule("public")
MEMBER: Final = AccessRule("member")
USER: Final = AccessRule("user")


def needs(resource: Resource, action: Action) -> AccessRule:
    """Require one cell of the table."""
    return AccessRule("permission", resource, action)


def is_permitted(roles: Iterable[str], resource: Resource, action: Action) -> bool:
    """True if any of the roles may do the action; unknown roles may do nothing."""
    row: Mapping[Any, frozenset[Action]] = TABLE[resource]
    return any(action in row.get(role, NONE) for role in roles)


def scope_of(resource: Resource, action: Action) -> str:
    """Return the scope of a cell of the table, which may not be in SCOPES."""
    return f"{resource}:{'read' if action == 'read' else 'write'}"


def scopes_of(role: Role) -> list[Scope]:
    """Return the scopes that a key with a role may have, in their order."""
    read_or_change: tuple[Action, ...] = ("read", "update")
    held = {
        scope_of(resource, action)
        for resource in TABLE
        for action in read_or_change
        if is_permitted([role], resource, action)
    }
    return [scope for scope in SCOPES if scope in held | OPEN_SCOPES]


def effective(roles: Iterable[str], scopes: frozenset[str] | None = None) -> dict[str, list[str]]:
    """Return ``{resource: [actions]}`` in the table's order, without empty rows.

    scopes: of an API key, None without one.
    """
    held = tuple(roles)
    table: dict[str, list[str]] = {
        resource: [
            action
            for action in ACTIONS
            if is_permitted(held, resource, action)
            and (scopes is None or scope_of(resource, action) in scopes)
        ]
        for resource in TABLE
    }
    return {resource: actions for resource, actions in table.items() if actions}


def highest_role(roles: Iterable[str]) -> Role:
    """Return the highest of the roles. Raises Forbidden if none of them is known."""
    held = set(roles)
    for role in ROLES:
        if role in held:
            return role
    raise Forbidden("You have no role here.")


def database_role(principal: Principal) -> Role:
    """Return the role that the caller's SQL runs with. Raises Forbidden if there is none."""
    role = highest_role(principal.roles)
    if principal.scopes is None:
        return role
    for lesser in ROLES[ROLES.index(role) :]:
        if principal.scopes >= DATABASE_SCOPES[lesser]:
            return lesser
    raise Forbidden("This takes the scope sql:read.")


def require(access: AccessRule, principal: Principal | None) -> None:
    """Return if the access allows the caller; raise NotAuthenticated (401) or Forbidden (403)."""
    if access.kind == "public":
        return
    if principal is None:
        raise NotAuthenticated
    if principal.kind == "pending" and principal.pending_use not in access.pending:
        raise TokenInvalid
    if principal.restriction == "email" and not access.is_open_without_email:
        raise EmailRequired
    if principal.restriction == "second_factor" and not access.is_always_open:
        raise SecondFactorDue
    if principal.scopes is not None:
        _require_scope(access, principal.scopes)
    if access.kind == "user" and principal.user_id is None:
        raise principal.has_no_user()
    if access.resource is None or access.action is None:
        return
    if not is_permitted(principal.roles, access.resource, access.action):
        raise Forbidden(f"This takes {access.resource}:{access.action}.")


def _require_scope(access: AccessRule, scopes: frozenset[str]) -> None:
    """Refuse an API key if the action is not for keys or its scopes do not include it."""
    scope: str = access.key_scope
    if access.resource is not None and access.action is not None and not access.is_fresh:
        scope = scope_of(access.resource, access.action)
    if access.is_closed_to_keys:
        raise ApiKeyForbidden
    if scope == "any":
        return
    if scope not in SCOPES or scope.startswith("schema:"):
        raise ApiKeyForbidden
    if scope not in scopes:
        raise Forbidden(f"This takes the scope {scope}.")


# Raises an error (403) unless the principal's session has a recent proof of the second factor.
FRESH_PROOF_GUARD: Final = Provided[[Principal], None]("the guard of recent proofs")
# Records in the audit trail that the request's principal lacks a permission: resource, action.
DENIAL_RECORDER: Final = Provided[[Any, str, str], None]("the recorder of denials")


def require_fresh(access: AccessRule, principal: Principal | None) -> None:
    """Require a recent proof of the second factor. Raises what its guard raises (403)."""
    if access.is_fresh and principal is not None:
        FRESH_PROOF_GUARD(principal)


def authorize(request: Any, access: AccessRule | None, principal: Principal | None) -> None:
    """Return if the caller may do this; every API request is checked here and only here.

    request: Django's or DRF's. access: None for a method that the path does not have.
    Raises MethodNotAllowed (405), and what ``require`` and ``require_fresh`` raise (401, 403).
    The audit trail records a caller that lacks a permission.
    """
    if access is None:
        raise MethodNotAllowed
    try:
        require(access, principal)
    except Forbidden as exc:
        if type(exc) in {Forbidden, ApiKeyForbidden} and access.resource and access.action:
            note_denial(request, access.resource, access.action)
        raise
    require_fresh(access, principal)


def note_denial(request: Any, resource: str, action: str) -> None:
    """Record that the caller lacked a permission. request: Django's or DRF's."""
    DENIAL_RECORDER(request, resource, action)


def _is_oneself(
    access: AccessRule | None, principal: Principal | None, path: Mapping[str, Any]
) -> TypeGuard[AccessRule]:
    """True if the path names the calling user, and the access needs no permission then."""
    if access is None or principal is None or principal.user_id is None:
        return False
    return access.is_open_to_oneself and path.get("user_id") == str(principal.user_id)


class HasAccess(BasePermission):
    """Enforce the ``access`` table of a view."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True, or raise an error with its own code."""
        method = "GET" if request.method == "HEAD" else request.method
        user: object = request.user
        principal = user if isinstance(user, Principal) else None
        access = view.access_for(method)
        if _is_oneself(access, principal, view.kwargs):
            access = access._replace(kind="user", resource=None, action=None)
        authorize(request, access, principal)
        return True
