"""Challenges by their id: locked in one statement, with all rows that their verification needs."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.db import connection

from accounts.models import Session, User
from common.database import joined_rows
from common.database.joined_rows import ModelColumns
from environments.models import Organization
from twofactor.errors import ChallengeGone
from twofactor.models import Challenge, Factor
from twofactor.stored_secrets import digest

_MODELS: Final = (
    ModelColumns(Challenge, "c"),
    ModelColumns(Factor, "f"),
    # The columns of user and organization that opening a session needs.
    ModelColumns(
        User,
        "u",
        "id",
        "organization_id",
        "email",
        "email_verified_at",
        "password",
        "is_active",
        "created_at",
    ),
    ModelColumns(
        Organization,
        "o",
        "id",
        "mfa_required",
        "mfa_required_since",
        "mfa_allowed_methods",
        "mfa_grace_period_days",
    ),
    ModelColumns(Session, "s", "id", "aal", "amr", "ends_at", "ended_at", "mfa_time", "mfa_method"),
)
# Factors are always locked before challenges, so that there are no deadlocks; PostgreSQL locks in
# the order that is written here.
_LOCK: Final = f"""
SELECT {joined_rows.columns(_MODELS)}
FROM twofactor_challenge c
JOIN twofactor_factor f ON f.id = c.factor_id
JOIN accounts_user u ON u.id = c.user_id
JOIN environments_organization o ON o.id = u.organization_id
LEFT JOIN accounts_session s ON s.id = c.session_id
WHERE c.digest = %s
FOR UPDATE OF f, c
"""  # noqa: S608 - column names of our own models

# The names are added to those of the row: the session was read without a lock, and may have lost
# one since then.
_ANSWERED: Final = """
WITH answered AS (UPDATE twofactor_challenge SET used_at = %(now)s WHERE digest = %(digest)s)
UPDATE accounts_session
SET aal = %(aal)s, mfa_time = %(now)s, mfa_method = %(method)s,
    amr = ARRAY(
        SELECT DISTINCT name COLLATE "C" FROM unnest(amr || %(proven)s::varchar[]) name ORDER BY 1
    )
WHERE id = %(session)s
"""


def lock(challenge_id: str, *, now: datetime) -> Challenge:
    """Lock an open challenge and its factor; call inside a transaction.

    Factor, user, organization and session are read along with it.
    Raises ChallengeGone (410).
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [digest("challenge", challenge_id)])
        row = cursor.fetchone()
    if row is None:
        raise ChallengeGone
    instances: list[Any] = joined_rows.split_row(row, _MODELS, connection)
    challenge, factor, user, organization, session = instances
    user.organization = organization
    factor.user = challenge.user = user
    challenge.factor, challenge.session = factor, session
    found: Challenge = challenge
    if not found.is_open(now) or not user.is_active:
        raise ChallengeGone
    return found


def use_up_for_session(
    challenge: Challenge, session: Session, *, proven: Sequence[str], now: datetime
) -> None:
    """Mark a locked challenge as used and record the assurance in its session.

    proven: the names to add to the session's ``amr``.
    """
    values: dict[str, Any] = {
        "now": now,
        "digest": challenge.pk,
        "aal": session.aal,
        "proven": list(proven),
        "method": session.mfa_method,
        "session": session.pk,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERED, values)
