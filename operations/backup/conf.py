"""Settings of backups."""

from dataclasses import dataclass, replace

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
    parse_store,
    with_secret,
)


def _store(text: str) -> StoreSettings:
    store = parse_store(text)
    if store.url == DATA_FOLDER:
        raise ValueError(f"must be like {EXAMPLES}.")
    return store


def _recipients(words: tuple[str, ...]) -> tuple[str, ...]:
    for word in words:
        try:
            x25519.Recipient.from_str(word)
        except RecipientError:
            raise ValueError("must list public keys of age, which begin with age1.") from None
    return words


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupSettings:
    """Store and recipients of backups. The store's URL is '' if backups are not configured."""

    store: StoreSettings = text(
        "ZBACKUP_URL",
        "Where `manage.py backup` writes, as ZBRAIN_STORE_URL: `file:///folder`, "
        "`s3://ACCESS_KEY@bucket/prefix?region=…` or `gs://ACCESS_KEY@bucket/prefix`.",
        parse=_store,
    )
    secret_key: str = secret(
        "ZBACKUP_SECRET_KEY", "Secret of ZBACKUP_URL, as ZBRAIN_STORE_SECRET_KEY.", min_chars=1
    )
    recipients: tuple[str, ...] = words(
        "ZBACKUP_RECIPIENTS",
        "Public keys of age that backups are encrypted to (`age1…`). The private ones open them, "
        "and are kept elsewhere.",
        parse=_recipients,
    )


TABLES = (BackupSettings,)


def read(env: Env) -> BackupSettings:
    """Return the settings of backups. Raises SettingError."""
    chosen = load(BackupSettings, env)
    if not chosen.store.url:
        return chosen
    if not chosen.recipients:
        raise SettingError("ZBACKUP_RECIPIENTS", "is missing: backups are always encrypted.")
    return replace(chosen, store=with_secret(chosen.store, chosen.secret_key, "ZBACKUP_"))
