"""What of the control plane's tables comes back after a restore, and what must not."""

from collections.abc import Set
from typing import Final

from django.apps import apps

# Whatever a restore would bring back to life although it was used, ended or revoked since: what
# opens an account, and what is on its way to somebody. These rows are in no backup.
OPENING: Final = frozenset(
    {
        *("sessions.Session", "accounts.Session", "accounts.ApiKey", "accounts.Delivery"),
        *("accounts.Invitation", "accounts.SignupLink", "accounts.MailboxProof"),
        *("accounts.OAuthTransaction", "accounts.OAuthGrant", "accounts.Throttle"),
        *("accounts.TerminalSignIn",),
        *("accounts.WebhookDelivery", "recovery.Recovery", "recovery.RecoveryChallenge"),
        *("twofactor.Challenge", "twofactor.Enrolment", "twofactor.PasskeyRequest"),
        *("twofactor.PendingSignIn", "twofactor.TrustedDevice"),
        *("sqlgateway.InteractiveTransaction", "sqlgateway.RunningSql"),
        *("brain.AccessKey",),
        # The queue: what is due is found again by its periodic tasks.
        *("procrastinate.ProcrastinateJob", "procrastinate.ProcrastinateEvent"),
        *("procrastinate.ProcrastinateWorker", "procrastinate.ProcrastinatePeriodicDefer"),
    }
)
# What is only true of the processes and servers of that moment.
PLACES: Final = frozenset(
    {
        # A restored platform must never reach the former one's servers.
        *("sqlgateway.Cluster", "sqlgateway.Database", "sqlgateway.RetiredDatabase"),
        # What the cache holds, and where its former stores are.
        *("brain.BrainInstance", "brain.CachedObject", "brain.Location", "brain.NodeJob"),
        *("brain.FillLease", "brain.PendingWrite", "brain.PurgeRecord", "brain.Release"),
        *("brain.Store", "brain.StoredBlob", "brain.DiscardedBytes"),
        *("brain.Upload", "brain.UploadPart"),
        # Its file is on that machine.
        *("accounts.OrganizationExport",),
    }
)
VOID: Final = OPENING | PLACES
# Restored as the last step, so that no process takes an unfinished restore for a platform.
LAST: Final = "django_migrations"


def left_out() -> list[str]:
    """Return the names of the tables whose rows are in no backup."""
    return sorted({*names_of(VOID), LAST})


def names_of(labels: Set[str]) -> list[str]:
    """Return the tables of models, of those that this installation has."""
    models = apps.get_models(include_auto_created=True)
    return sorted(model._meta.db_table for model in models if model._meta.label in labels)
