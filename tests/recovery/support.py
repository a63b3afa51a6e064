"""A recovery from the owner's view, and the messages that were sent."""

import json
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.models import User
from common.crypto import decrypt, encrypt
from outbox.models import Delivery
from recovery import tasks
from tests.cast import PASSWORD, Answer, Caller
from twofactor.models import Factor

PREFIX = "/v1/auth/recovery"
NEW_PASSWORD = "another horse, another staple"
PHONE = "+4915112345678"


def jobs() -> list[dict[str, Any]]:
    """Return the arguments of the jobs that recovery has queued."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT args FROM procrastinate_jobs WHERE task_name = 'recovery.resolve' ORDER BY id"
        )
        return [json.loads(row[0]) for row in cursor.fetchall()]


def work() -> None:
    """Run the queued jobs, as the worker does; each of them twice, since they may be."""
    for arguments in jobs():
        tasks.resolve(**arguments)
        tasks.resolve(**arguments)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM procrastinate_jobs WHERE task_name = 'recovery.resolve'")


def sent(template: str = "", *, to: str = "") -> list[dict[str, Any]]:
    """Return what was queued for sending, oldest first: mails by template, texts as ''."""
    rows = Delivery.objects.filter(template=template).order_by("pk")
    contents = [json.loads(decrypt(row.payload)) for row in rows]
    return [content for content in contents if not to or content["to"] == to]


def initiate(user: User | None = None, *, email: str = "", org_id: int = 0, **more: Any) -> Answer:
    """Start a recovery, by mail unless said otherwise; the jobs are run."""
    body = {
        "org_id": org_id or (user.organization_id if user else 1),
        "email": email or (user.email if user else "nobody@example.com"),
        "method": "email",
    }
    answer = Caller().post(f"{PREFIX}/initiate", body | more)
    work()
    return answer


def mailed_token(*, to: str = "") -> str:
    """Return the token that was mailed last."""
    return str(sent("recovery_token", to=to)[-1]["context"]["token"])


def texted_token() -> str:
    """Return the token that was sent by text message last."""
    return str(sent()[-1]["text"]).split()[0]


def verify(started: Answer, token: str) -> Answer:
    """Hand a token in."""
    assert started.status == 202, started.body
    body = {"recovery_id": started.body["recovery_id"], "token": token}
    return Caller().post(f"{PREFIX}/verify", body)


def proven(user: User, **more: Any) -> Answer:
    """Start a recovery by mail and hand the token in."""
    started = initiate(user, **more)
    answer = verify(started, mailed_token(to=user.email))
    assert answer.status == 200, answer.body
    return answer


def complete(verified: Answer, password: str = NEW_PASSWORD, **more: Any) -> Answer:
    """Choose a new password."""
    body = {"reset_token": verified.body["reset_token"], "password": password}
    return Caller().post(f"{PREFIX}/complete", body | more)


def challenge(verified: Answer, method: str = "") -> Answer:
    """Request a challenge for a second factor."""
    body = {"reset_token": verified.body["reset_token"], "method": method}
    return Caller().post(f"{PREFIX}/challenge", body)


def log_in(user: User, password: str = PASSWORD) -> Answer:
    """Log in with a password."""
    return Caller().post("/v1/auth/login", {"email": user.email, "password": password})


def with_factor(user: User, method: str, secret: str) -> Factor:
    """Return a user a factor that codes are sent to."""
    factor = Factor(
        organization_id=user.organization_id,
        user=user,
        method=method,
        secret=encrypt(secret),
        hint=f"•••• {secret[-2:]}",
        created_at=timezone.now(),
    )
    factor.save(force_insert=True)
    return factor


def last_code(template: str = "") -> str:
    """Return the second factor's code that was sent last, by mail or by text message."""
    content = sent(template)[-1]
    return str(content["context"]["code"] if template else content["text"].split()[0])


def without_id(answer: Answer) -> dict[str, Any]:
    """Return a body without the fields that differ in every response."""
    kept = ("request_id", "recovery_id", "expires_at")
    return {key: value for key, value in answer.body.items() if key not in kept}
