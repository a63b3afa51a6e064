"""Who calls, and how a generated example is sent."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.test import Client
from schemathesis import Case

from accounts.models import User
from environments.models import Organization
from sqlgateway.transactions.open_transactions import OPEN_TRANSACTIONS
from tests.accounts.api_keys import support as api_keys
from tests.cast import HANDLER, Caller, member, organization, signed_in
from tests.outbox.webhooks.support import send_test
from tests.rules.fuzzing.operations import CHECKS
from tests.rules.objects import MAKERS, host_in

# Objects of a caller's own; the others are made by an admin of the caller's organization.
PERSONAL: Final = frozenset(
    {"credential_id", "device_id", "identity_id", "request_id", "session_id"}
)


@dataclass(frozen=True, slots=True)
class World:
    """The callers by name, each with the user in whose name it acts; an admin by organization."""

    callers: dict[str, tuple[Caller, User]]
    admins: dict[int, User]

    @classmethod
    def around(cls, home: Organization, owner: User) -> "World":
        """Return nobody, each role, staff of the platform, and an API key."""
        users = {"admin": owner}
        for role in ("operator", "reader"):
            users[role] = member(home, f"{role}@example.com", role=role)
        staff = users["staff"] = member(organization("Staff"), "staff@example.com")
        User.objects.filter(pk=staff.pk).update(is_staff=True)
        callers = {name: (signed_in(user), user) for name, user in users.items()}
        callers["API key"] = (api_keys.holder(owner), owner)
        callers["anonymous"] = (Caller(), owner)
        return cls(callers, {user.organization_id: user for user in (owner, staff)})

    def send(self, case: Case[Any], name: str, *, is_known: bool) -> None:
        """Send an example as one caller and check the response.

        is_known: the ids in its path are those of objects that were just made for the caller.
        """
        caller, user = self.callers[name]
        with undone():
            if is_known:
                case.path_parameters = {**case.path_parameters, **self._objects(case, caller, user)}
            authorization = {"Authorization": f"Bearer {caller.access_token}"}
            headers = authorization if caller.access_token else {}
            response = case.call(headers=headers, app=application)
            case.validate_response(response, checks=CHECKS)

    def _objects(self, case: Case[Any], caller: Caller, user: User) -> dict[str, str]:
        """Make what the path of an example names; return the ids by the path's names."""
        admin, made = self.admins[user.organization_id], dict[str, str]()
        # From left to right: what is inside of another thing comes after it.
        for name in re.findall(r"{(\w+)}", case.path):
            if name == "host":
                made[name] = host_in(admin, made["bucket_name"])
            elif name == "delivery_id":
                made[name] = send_test(admin, {"id": made["webhook_id"]})
            elif name == "user_id":
                made[name] = str(member(admin.organization, "guest@example.com", role="reader").pk)
            elif name == "transaction_id" and caller.access_token:
                begun = caller.post("/v1/sql/transactions").body
                made[name] = begun["id"] if "id" in begun else MAKERS[name](user)
            elif name == "provider":
                made[name] = "google"
            elif name in MAKERS:
                made[name] = MAKERS[name](user if name in PERSONAL else admin)
        return made


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """Answer as the platform does, and hold the exchange against the document (conformance.py)."""
    client = Client(raise_request_exception=False)
    client.handler = HANDLER
    response: Any = client.request(**environ)
    body = b"".join(response.streaming_content) if response.streaming else response.content
    start_response(f"{response.status_code} {response.reason_phrase}", [*response.items()])
    return [body]


@contextmanager
def undone() -> Iterator[None]:
    """Take back what the block writes, so that no example and no caller sees another's."""
    with transaction.atomic():
        # As pytest-django marks its own: code that wants to be outermost is let through.
        transaction.get_connection().atomic_blocks[-1]._from_testcase = True
        try:
            yield
        finally:
            OPEN_TRANSACTIONS.clear()
            transaction.set_rollback(True)
