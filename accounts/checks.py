"""Deployment checks: settings that are fine on a laptop and not in production."""

import os
from typing import Any, Final

from django.conf import settings
from django.core import checks

# What must come from outside: a value made at start would differ in every process.
REQUIRED: Final = (
    ("SECRET_KEY", "zonal.E001"),
    ("ZSECRET_KEYS", "zonal.E002"),
    ("ZJWT_SECRET", "zonal.E003"),
    ("ZJWT_REFRESH_SECRET", "zonal.E004"),
    ("DATABASE_URL", "zonal.E005"),
    ("ZSQL_CLUSTER_URL", "zonal.E006"),
    ("ZALLOWED_HOSTS", "zonal.E007"),
)


@checks.register(checks.Tags.security, deploy=True)
def production_settings(**_options: Any) -> list[checks.CheckMessage]:
    """Name every setting that production must be given and was not."""
    messages: list[checks.CheckMessage] = [
        checks.Error(f"{name} is not set.", hint="See docs/settings.md.", id=check_id)
        for name, check_id in REQUIRED
        if not (os.environ.get(name) or os.environ.get(f"{name}_FILE"))
    ]
    if not settings.IS_PRODUCTION:
        messages.append(checks.Error("PRODUCTION is not true.", id="zonal.E008"))
    if settings.DEV_SECRET:
        hint = "Development tokens are refused here all the same."
        messages.append(checks.Warning("ZAUTH_DEV_SECRET is set.", hint=hint, id="zonal.W001"))
    if "*" in settings.ALLOWED_HOSTS:
        messages.append(checks.Error("ZALLOWED_HOSTS accepts any host.", id="zonal.E009"))
    return messages
