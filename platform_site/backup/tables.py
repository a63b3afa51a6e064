"""Which tables of the control plane are in a backup, and which are not."""

from collections.abc import Set
from typing import Final

from django.apps import apps

# Credentials and queued messages: a restore would make them valid again although they were used,
# ended or revoked since. These rows are in no backup.
OPENING: Final = frozenset(
    {
        "sessions.Session",
        "accounts.Session",
        "accounts.ApiKey",
        "accounts.Delivery",
        "accounts.Invitation",
        "accounts.SignupLink",
        "accounts.MailboxProof",
        "accounts.OAuthTransaction",
        "accounts.OAuthGrant",
        "accounts.Throttle",
        "accounts.TerminalSignIn",
        "accounts.WebhookDelivery",
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
        "accounts.OrganizationExport",
    }
)
VOID: Final = OPENING | PLACES
# Restored in the last step, so that no process starts on an unfinished restore.
LAST: Final = "django_migrations"


def omitted_tables() -> list[str]:
    """Return the names of the tables whose rows are in no backup."""
    return sorted({*names_of(VOID), LAST})


def names_of(labels: Set[str]) -> list[str]:
    """Return the tables of those models that this installation has."""
    models = apps.get_models(include_auto_created=True)
    return sorted(model._meta.db_table for model in models if model._meta.label in labels)
