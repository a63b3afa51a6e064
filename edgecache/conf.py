"""Settings of the edge cache on the platform's side: how it reaches the brain."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Final

from common.settings.env import Env
from common.settings.table import Flag, Integer, Text, load
from edgecache.brain.conf.brain import BrainSettings, api_url


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheSettings:
    """How the platform reaches the brain. secret: empty where none is configured."""

    is_enabled: Annotated[
        bool,
        Flag(
            "ZCACHE_ENABLED",
            "Master switch: off, every cache call succeeds and does nothing.",
            default=True,
        ),
    ]
    brain_url: Annotated[
        str,
        Text(
            "ZCACHE_BRAIN_URL",
            "URL of the brain's internal API.",
            shown="http://127.0.0.1:ZBRAIN_PORT",
            parse=api_url,
        ),
    ]
    s3_url: str
    secret: str = field(repr=False)
    timeout_s: Annotated[
        int,
        Integer(
            "ZCACHE_TIMEOUT",
            "Time limit of a call to the brain.",
            default=10,
            unit="seconds",
            minimum=1,
        ),
    ]
    metrics_interval_s: Annotated[
        int,
        Integer(
            "ZCACHE_METRICS_INTERVAL",
            "Time between two polls of the brain's metrics.",
            default=30,
            unit="seconds",
            minimum=1,
            maximum=3600,
        ),
    ]


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
