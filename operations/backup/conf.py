"""Settings of backups."""

from dataclasses import dataclass

from pyrage import RecipientError, x25519

from common.settings.env import Env, SettingError
from common.settings.table import (
    load,
    secret,
    text,
    words,
)
from edgecache.brain.conf.stores import (
    DATA_FOLDER,
    EXAMPLES,
    StoreSettings,
    check_store,
    store_endpoint,
    store_url,
)


def _store(text: str) -> str:
    url = store_url(text)
    if url == DATA_FOLDER:
        raise ValueError(f"must be like {EXAMPLES}.")
    return url


def _recipients(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        try:
            x25519.Recipient.from_str(word)
        except RecipientError:
            raise ValueError("must list public keys of age, which begin with age1.") from None
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSettings(StoreSettings):
    """Store and recipients of backups. '' and () if backups are not configured."""

    url: str = text(
        "ZBACKUP_URL",
        "Where `manage.py backup` writes: `file:///folder`, `s3://bucket/prefix`, "
        "`gs://bucket/prefix` or `az://account/container/prefix`.",
        parse=_store,
    )
    recipients: tuple[str, ...] = words(
        "ZBACKUP_RECIPIENTS",
        "Public keys of age that backups are encrypted to (`age1…`). The private ones open "
        "them, and are kept elsewhere.",
        parse=_recipients,
    )
    endpoint: str = text(
        "ZBACKUP_ENDPOINT",
        "Endpoint of ZBACKUP_URL, where it is not the provider's own.",
        parse=store_endpoint,
    )
    region: str = text("ZBACKUP_REGION", "Region of ZBACKUP_URL (S3).", default="us-east-1")
    access_key: str = text("ZBACKUP_ACCESS_KEY", "Access key id of ZBACKUP_URL (S3).")
    secret_key: str = secret(
        "ZBACKUP_SECRET_KEY", "Secret of ZBACKUP_URL, as ZBRAIN_STORE_SECRET_KEY.", min_chars=1
    )


TABLES = (BackupSettings,)


def read(env: Env) -> BackupSettings:
    """Return the settings of backups. Raises SettingError."""
    chosen = load(BackupSettings, env)
    if chosen.url:
        check_store(chosen, "ZBACKUP_")
        if not chosen.recipients:
            raise SettingError("ZBACKUP_RECIPIENTS", "is missing: backups are always encrypted.")
    return chosen
