"""Settings of the edge cache on the platform's side: how it reaches the brain."""

from dataclasses import dataclass, field, replace
from typing import Final

from common.settings.env import Env
from common.settings.table import (
    flag,
    integer,
    load,
    text,
)
from edgecache.brain.conf.brain import BrainSettings, api_url


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """How the platform reaches the brain. secret: empty where none is configured."""

    is_enabled: bool = flag(
        "ZCACHE_ENABLED",
        "Master switch: off, every cache call succeeds and does nothing.",
        default=True,
    )
    brain_url: str = text(
        "ZCACHE_BRAIN_URL",
        "URL of the brain's internal API.",
        shown="http://127.0.0.1:ZBRAIN_PORT",
        parse=api_url,
    )
    s3_url: str
    secret: str = field(repr=False)
    timeout_s: int = integer(
        "ZCACHE_TIMEOUT",
        "Time limit of a call to the brain.",
        default=10,
        unit="s",
        minimum=1,
    )
    metrics_interval_s: int = integer(
        "ZCACHE_METRICS_INTERVAL",
        "Time between two polls of the brain's metrics.",
        default=30,
        unit="s",
        minimum=1,
        maximum=3600,
    )


TABLES: Final = (CacheSettings,)


def read(env: Env, brain: BrainSettings) -> CacheSettings:
    """Return the settings of the platform's side.

    brain: of the brain; unset, the URLs name its ports on this machine.
    Raises SettingError.
    """
    chosen = load(CacheSettings, env, s3_url=brain.s3_url, secret=brain.secret)
    return replace(
        chosen,
        brain_url=chosen.brain_url or f"http://127.0.0.1:{brain.internal.port}",
    )
