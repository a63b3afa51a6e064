"""Which tables of the control plane are in a backup, and which are not."""

from collections.abc import Set
from typing import Final

from django.apps import apps
from django.conf import settings

from common.commands import CommandRefused
from edgecache.brain.router import LABEL as BRAIN

# Credentials and queued messages: a restore would make them valid again although they were used,
# ended or revoked since. These rows are in no backup.
OPENING: Final = frozenset(
    {
        "sessions.Session",
        "accounts.Session",
        "accounts.ApiKey",
        "outbox.Delivery",
        "organizations.Invitation",
        "accounts.SignupLink",
        "accounts.MailboxProof",
        "oauth.OAuthTransaction",
        "oauth.OAuthGrant",
        "common.Throttle",
        "accounts.TerminalSignIn",
        "outbox.WebhookDelivery",
        "recovery.Recovery",
        "recovery.RecoveryChallenge",
        "twofactor.Challenge",
        "twofactor.Enrolment",
        "twofactor.PasskeyRequest",
        "twofactor.PendingSignIn",
        "twofactor.TrustedDevice",
        "sqlgateway.InteractiveTransaction",
        "sqlgateway.RunningSql",
        "brain.AccessKey",
        # The task queue: periodic tasks find due work again.
        "procrastinate.ProcrastinateJob",
        "procrastinate.ProcrastinateEvent",
        "procrastinate.ProcrastinateWorker",
        "procrastinate.ProcrastinatePeriodicDefer",
    }
)
# State of the processes and servers at that time.
PLACES: Final = frozenset(
    {
        # A restored platform must not reach the servers of the original one.
        "sqlgateway.Cluster",
        "sqlgateway.Database",
        "sqlgateway.RetiredDatabase",
        # Cached data, and the addresses of the original stores.
        "brain.BrainInstance",
        "brain.CachedObject",
        "brain.Location",
        "brain.NodeJob",
        "brain.FillLease",
        "brain.PendingWrite",
        "brain.PurgeRecord",
        "brain.Release",
        "brain.Store",
        "brain.StoredBlob",
        "brain.DiscardedBytes",
        "brain.Upload",
        "brain.UploadPart",
        # The files are on the original machine.
        "organizations.OrganizationExport",
    }
)
VOID: Final = OPENING | PLACES
# Restored in the last step, so that no process starts on an unfinished restore.
LAST: Final = "django_migrations"


def omitted_tables() -> list[str]:
    """Return the names of the tables whose rows are in no backup."""
    return sorted({*names_of(VOID), LAST})


def names_of(labels: Set[str]) -> list[str]:
    """Return the tables of models, by their labels.

    Raises CommandRefused for a label without a model, because its rows would be in the backup.
    """
    return sorted(map(_table_of, labels))


def _table_of(label: str) -> str:
    if label.startswith(f"{BRAIN}.") and not settings.HAS_CACHE:
        # Its models are not loaded, but an installation that had the cache before has its tables.
        return label.replace(".", "_").lower()
    try:
        table: str = apps.get_model(label)._meta.db_table
    except LookupError as exc:
        sentence = f"{label} is no model: the rows of its table would be in the backup."
        raise CommandRefused("model_unknown", sentence, label=label) from exc
    return table
