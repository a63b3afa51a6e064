"""Django's settings: every value from the environment through ``platform_site.env``."""

import os
import secrets
from pathlib import Path
from typing import Any, Final

from cryptography.fernet import Fernet
from psycopg import Error as PsycopgError
from psycopg.conninfo import conninfo_to_dict

from platform_site import env as environment
from platform_site.lib import delivery_settings, passkey_settings, sql_settings
from platform_site.lib.logs import logging_config
from platform_site.lib.problem_schema import PROBLEM_SCHEMA

ENV: Final = environment.from_process()
BASE_DIR: Final = Path(__file__).resolve().parent.parent
DATA_DIR: Final = environment.data_dir(os.environ)
IS_PRODUCTION: Final = environment.is_production(os.environ)

ENV.text("ZDATA_DIR", help_text="Folder of what an installation must not lose.", shown="./var")
ENV.text(
    "ZPG_BINDIR",
    help_text="Folder of PostgreSQL's programs (15 to 18) for `up`.",
    shown="the bundled PostgreSQL 18",
)
ENV.flag(
    "PRODUCTION",
    default=False,
    help_text="Production: development tokens are refused, unsafe settings too. "
    "NODE_ENV, DJANGO_ENV and the markers of hosting platforms count as well.",
)
PORT: Final = ENV.integer(
    "PORT", 8000, help_text="Port of the web server.", minimum=1, maximum=65535
)
BIND: Final = (
    ENV.text("ZBIND", help_text="Address and port to listen on.", shown="127.0.0.1:PORT")
    or f"127.0.0.1:{PORT}"
)
WEB_WORKERS: Final = ENV.integer(
    "ZWEB_WORKERS", 2, help_text="Web server processes.", minimum=1, maximum=256
)
WEB_THREADS: Final = ENV.integer(
    "ZWEB_THREADS", 8, help_text="Threads in each web server process.", minimum=1, maximum=256
)

SERVICE_NAME: Final = ENV.text(
    "SERVICE_NAME", "zonal", help_text="Short name: prefix of development tokens, token issuer."
)
DEBUG: Final = False
ALLOWED_HOSTS = list(
    ENV.words(
        "ZALLOWED_HOSTS",
        () if IS_PRODUCTION else ("localhost", "127.0.0.1", "[::1]", "testserver"),
        help_text="Host names this service answers to; required in production.",
    )
)
SECRET_KEY: Final = ENV.secret(
    "SECRET_KEY", help_text="Django's signing key (admin sessions)."
) or secrets.token_urlsafe(48)
SECRET_KEYS: Final = ENV.secrets(
    "ZSECRET_KEYS",
    help_text="Fernet keys that encrypt secrets at rest, the current one first; "
    "losing them loses the tenants' database passwords and second factors.",
) or (Fernet.generate_key().decode(),)

# --- tokens (interface.md, "Configuration variables") -----------------------------------------
# Unset means random: `up` makes them once and keeps them in runtime.env; a process started
# without either signs with keys of its own, and `check --deploy` refuses that in production.
JWT_SECRETS: Final = (
    ENV.secret("ZJWT_SECRET", help_text="HMAC key for access tokens.") or secrets.token_urlsafe(48),
    *ENV.secrets("ZJWT_SECRET_PREVIOUS", help_text="Earlier access keys that still verify."),
)
JWT_REFRESH_SECRETS: Final = (
    ENV.secret("ZJWT_REFRESH_SECRET", help_text="HMAC key for refresh tokens.")
    or secrets.token_urlsafe(48),
    *ENV.secrets(
        "ZJWT_REFRESH_SECRET_PREVIOUS", help_text="Earlier refresh keys that still verify."
    ),
)
MFA_SECRETS: Final = (
    ENV.secret(
        "ZMFA_SECRET",
        help_text="HMAC key of the second factor: pending sign-ins, digests of codes, devices.",
    )
    or secrets.token_urlsafe(48),
    *ENV.secrets("ZMFA_SECRET_PREVIOUS", help_text="Earlier keys of pending sign-ins."),
)
KEYS: Final = (SECRET_KEY, *JWT_SECRETS, *JWT_REFRESH_SECRETS, *MFA_SECRETS)
if len(set(KEYS)) < len(KEYS):
    raise environment.SettingError(
        "ZJWT_SECRET",
        "must differ from ZJWT_REFRESH_SECRET, ZMFA_SECRET, SECRET_KEY and the previous keys.",
    )
JWT_ACCESS_TTL_S: Final = ENV.integer(
    "ZJWT_ACCESS_TTL_SECS",
    900,
    help_text="Access token lifetime in seconds.",
    minimum=1,
    maximum=86400,
)
JWT_REFRESH_TTL_S: Final = ENV.integer(
    "ZJWT_REFRESH_TTL_SECS",
    604800,
    help_text="Refresh token lifetime in seconds.",
    minimum=1,
    maximum=31536000,
)
JWT_REFRESH_GRACE_S: Final = ENV.integer(
    "ZJWT_REFRESH_GRACE_SECS",
    10,
    help_text="Seconds in which the previous refresh token gives the same successor again.",
    maximum=120,
)
SESSION_MAX_S: Final = ENV.integer(
    "ZJWT_SESSION_MAX_SECS",
    2592000,
    help_text="Longest life of one sign-in in seconds, however often it is refreshed.",
    minimum=60,
    maximum=2592000,
)
SESSIONS_PER_USER: Final = ENV.integer(
    "ZSESSIONS_PER_USER",
    100,
    help_text="Live sessions one user may hold; the least recently used one ends for a new one.",
    minimum=1,
    maximum=10000,
)
DEV_ORG_ID: Final = ENV.integer(
    "ZAUTH_DEV_ORG_ID", 0, help_text="Organization id for development tokens; 0 means none."
)
DEV_SECRET: Final = ENV.secret("ZAUTH_DEV_SECRET", help_text="HMAC key of development tokens.")

# --- limits -----------------------------------------------------------------------------------
TRUSTED_PROXY_COUNT: Final = ENV.integer(
    "ZTRUSTED_PROXY_COUNT",
    0,
    help_text="Proxies of one's own in front; X-Forwarded-For counts only behind these.",
    maximum=8,
)
BODY_LIMIT_BYTES: Final = ENV.integer(
    "ZBODY_LIMIT_BYTES",
    65536,
    help_text="Largest JSON body (POST /v1/sql has a limit of its own).",
    minimum=1024,
    maximum=2**24,
)
LIMIT_SIGNUPS_PER_HOUR: Final = ENV.integer(
    "ZLIMIT_SIGNUPS_PER_HOUR", 20, help_text="Sign-ups per client address and hour.", minimum=1
)
LIMIT_LOGINS_PER_ADDRESS: Final = ENV.integer(
    "ZLIMIT_LOGINS_PER_ADDRESS",
    100,
    help_text="Failed logins per client address in 15 minutes.",
    minimum=1,
)
LIMIT_LOGINS_PER_ACCOUNT: Final = ENV.integer(
    "ZLIMIT_LOGINS_PER_ACCOUNT",
    5,
    help_text="Failed logins per account before each further try waits longer (to 15 minutes).",
    minimum=1,
)

MFA_SENDS_PER_RECEIVER: Final = ENV.integer(
    "ZMFA_SENDS_PER_RECEIVER",
    20,
    help_text="Codes sent to one number or address in a day.",
    minimum=1,
)
MFA_SENDS_PER_ORGANIZATION: Final = ENV.integer(
    "ZMFA_SENDS_PER_ORGANIZATION",
    2000,
    help_text="Codes sent for one organization in a day.",
    minimum=1,
)

# --- passkeys ---------------------------------------------------------------------------------
WEBAUTHN_ORIGINS: Final = passkey_settings.origins(
    ENV, ALLOWED_HOSTS, port=PORT, is_production=IS_PRODUCTION
)
WEBAUTHN_RP_ID: Final = passkey_settings.rp_id(ENV, WEBAUTHN_ORIGINS)
LIMIT_PASSKEY_STARTS_PER_ADDRESS: Final = ENV.integer(
    "ZLIMIT_PASSKEY_STARTS_PER_ADDRESS",
    600,
    help_text="Sign-ins by passkey begun per client address in 15 minutes.",
    minimum=1,
)

# --- recovery ---------------------------------------------------------------------------------
RECOVERY_DELAY_S: Final = ENV.integer(
    "ZRECOVERY_DELAY_SECS",
    86400,
    help_text="Seconds between two proofs of who lost the second factor and its removal; "
    "any notified address can cancel until then.",
    minimum=60,
    maximum=2592000,
)
LIMIT_RECOVERIES_PER_ADDRESS: Final = ENV.integer(
    "ZLIMIT_RECOVERIES_PER_ADDRESS",
    30,
    help_text="Recoveries started per client address and hour.",
    minimum=1,
)
LIMIT_RECOVERIES_PER_ACCOUNT: Final = ENV.integer(
    "ZLIMIT_RECOVERIES_PER_ACCOUNT",
    10,
    help_text="Recoveries started for one account in a day.",
    minimum=1,
)

# --- passwords --------------------------------------------------------------------------------
ARGON2_MEMORY_KIB: Final = ENV.integer(
    "ZARGON2_MEMORY_KIB", 19456, help_text="Argon2id memory per hash.", minimum=8192
)
ARGON2_TIME_COST: Final = ENV.integer(
    "ZARGON2_TIME_COST", 2, help_text="Argon2id passes.", minimum=1, maximum=100
)
ARGON2_PARALLELISM: Final = ENV.integer(
    "ZARGON2_PARALLELISM", 1, help_text="Argon2id lanes.", minimum=1, maximum=64
)
ARGON2_CONCURRENCY: Final = ENV.integer(
    "ZARGON2_CONCURRENCY",
    2,
    help_text="Hashes computed at once in one process; further ones wait their turn.",
    minimum=1,
    maximum=256,
)
PASSWORD_HASHERS: Final = ["accounts.passwords.TunedArgon2Hasher"]

# --- databases --------------------------------------------------------------------------------
DATABASE_URL: Final = ENV.url(
    "DATABASE_URL",
    help_text="The control database; unset, `up` runs one of its own.",
    schemes=("postgresql", "postgres"),
)
SQL_CLUSTER_URL: Final = ENV.url(
    "ZSQL_CLUSTER_URL",
    help_text="The tenants' cluster, as a role that may create databases and roles; "
    "unset, `up` runs one of its own.",
    schemes=("postgresql", "postgres"),
)
# The gateway's limits, a table of their own: SQL_TIMEOUT_MS and the like.
globals().update(sql_settings.read(ENV))
DB_POOL_SIZE: Final = ENV.integer(
    "ZDB_POOL_SIZE",
    0,
    help_text="Connections to the control database per web process, shared by its threads; "
    "0 gives each thread a connection of its own that it keeps.",
    maximum=1000,
)


def control_database(url: str, pool_size: int) -> dict[str, Any]:
    """Give Django's DATABASES entry for a libpq URL.

    Raises SettingError when libpq cannot read the URL.
    """
    try:
        parts = dict(conninfo_to_dict(url))
    except PsycopgError as exc:
        raise environment.SettingError("DATABASE_URL", "is not a URL libpq can read.") from exc
    options: dict[str, Any] = {"connect_timeout": 2, "application_name": "zonal"}
    entry: dict[str, Any] = {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.pop("dbname", "") or "zonal",
        "USER": parts.pop("user", "") or "",
        "PASSWORD": parts.pop("password", "") or "",
        "HOST": parts.pop("host", "") or "",
        "PORT": str(parts.pop("port", "") or ""),
        "CONN_MAX_AGE": 0 if pool_size else None,
        "OPTIONS": options | parts,
    }
    if pool_size:
        # A lost database must be a quick 503, not a queue: hence the short timeout.
        options_pool = {"min_size": 1, "max_size": pool_size, "timeout": 2}
        entry["OPTIONS"]["pool"] = options_pool
    return entry


DATABASES = {"default": control_database(DATABASE_URL, DB_POOL_SIZE)}
DEFAULT_AUTO_FIELD: Final = "django.db.models.BigAutoField"

# --- applications -----------------------------------------------------------------------------
INSTALLED_APPS: Final = [
    "unfold.apps.BasicAppConfig",
    "platform_site.apps.AdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "procrastinate.contrib.django",
    "platform_site.apps.PlatformConfig",
    "environments.apps.EnvironmentsConfig",
    "accounts.apps.AccountsConfig",
    "recovery.apps.RecoveryConfig",
    "twofactor.apps.TwoFactorConfig",
    "sqlgateway.apps.SqlGatewayConfig",
]
MIDDLEWARE: Final = [
    "platform_site.lib.requests.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "platform_site.console.middleware.ConsoleMiddleware",
    "accounts.middleware.PrincipalMiddleware",
    "environments.middleware.ScopeMiddleware",
]
AUTH_USER_MODEL: Final = "accounts.User"
# The e-mail is unique by an index over its upper case, which this check cannot see.
SILENCED_SYSTEM_CHECKS: Final = ["auth.W004"]
AUTHENTICATION_BACKENDS: Final = ["accounts.backends.StaffBackend"]
# Upward needs, by dotted path: what the lower layers call without knowing who answers.
PRINCIPAL_AUTHENTICATORS: Final = [
    "accounts.development.authenticate",
    "twofactor.pending.authenticate",
    "accounts.authentication.authenticate",
]
LIFECYCLE_HOOKS: Final = {
    "environment_deleted": [
        "accounts.sessions.on_environment_deleted",
        "sqlgateway.provisioning.on_environment_deleted",
    ],
    "environment_dropped": ["sqlgateway.provisioning.on_environment_dropped"],
}
LOGIN_STAGES: Final = ["twofactor.stages.second_factor"]
FRESH_PROOF_GUARD: Final = "twofactor.stepup.require_recent_proof"
AUDIT_RECORDER: Final = "accounts.audit.record_request"
ENVIRONMENT_RETENTION_DAYS: Final = ENV.integer(
    "ZENVIRONMENT_RETENTION_DAYS",
    7,
    help_text="Days between deleting an environment and dropping its data.",
    maximum=365,
)

ROOT_URLCONF: Final = "platform_site.urls"
WSGI_APPLICATION: Final = "platform_site.wsgi.application"
APPEND_SLASH: Final = False
USE_TZ: Final = True
TIME_ZONE: Final = "UTC"
LANGUAGE_CODE: Final = "en-us"
USE_I18N: Final = False
TEMPLATES: Final = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
STATIC_URL: Final = "/static/"
STATIC_ROOT: Final = (
    ENV.text(
        "ZSTATIC_ROOT",
        help_text="Where `collectstatic` puts the pages' files; "
        "unset, they are served from where the packages keep them.",
    )
    or None
)
STATICFILES_DIRS: Final = [BASE_DIR / "platform_site" / "console" / "static"]
WHITENOISE_USE_FINDERS: Final = STATIC_ROOT is None
DATA_UPLOAD_MAX_MEMORY_SIZE: Final = 2**21

# --- mail and SMS -----------------------------------------------------------------------------
MAIL: Final = delivery_settings.mail_backend(ENV)
EMAIL_BACKEND: Final = MAIL.path
MAIL_OPTIONS: Final = MAIL.options
DEFAULT_FROM_EMAIL: Final = delivery_settings.mail_sender(ENV)
SMS: Final = delivery_settings.sms_backend(ENV, DATA_DIR, is_production=IS_PRODUCTION)
SMS_BACKEND: Final = SMS.path
SMS_OPTIONS: Final = SMS.options
PROCRASTINATE_IMPORT_PATHS: Final = ["accounts.delivery.tasks", "twofactor.webauthn.tasks"]

# --- transport --------------------------------------------------------------------------------
SECURE_SSL_REDIRECT: Final = ENV.flag(
    "ZFORCE_HTTPS",
    default=IS_PRODUCTION,
    help_text="Redirect http to https and send HSTS; on by default in production.",
)
SECURE_HSTS_SECONDS: Final = 31536000 if SECURE_SSL_REDIRECT else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS: Final = SECURE_SSL_REDIRECT
SECURE_HSTS_PRELOAD: Final = SECURE_SSL_REDIRECT
# Load balancers and supervisors ask over plain HTTP, from inside.
SECURE_REDIRECT_EXEMPT: Final = [r"^healthz$", r"^readyz$", r"^metrics$"]
# The header is a caller's claim unless a proxy of ours writes it.
SECURE_PROXY_SSL_HEADER: Final = (
    ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXY_COUNT else None
)
SESSION_COOKIE_SECURE: Final = SECURE_SSL_REDIRECT
CSRF_COOKIE_SECURE: Final = SECURE_SSL_REDIRECT
SESSION_COOKIE_AGE: Final = 43200
X_FRAME_OPTIONS: Final = "DENY"

# --- API --------------------------------------------------------------------------------------
REST_FRAMEWORK: Final = {
    "EXCEPTION_HANDLER": "platform_site.lib.problems.handle",
    "DEFAULT_PARSER_CLASSES": ["platform_site.lib.bodies.StrictJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["platform_site.lib.bodies.OrjsonRenderer"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["platform_site.lib.authentication.PrincipalAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["platform_site.lib.permissions.HasAccess"],
    "DEFAULT_SCHEMA_CLASS": "platform_site.lib.schema.Schema",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS: Final = {
    "TITLE": "Zonal",
    "DESCRIPTION": "Accounts, environments and SQL over HTTP. Errors are problem documents "
    "(RFC 9457) with a stable `code`.",
    "VERSION": "1",
    "SCHEMA_PATH_PREFIX": "/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": [],
    "SERVE_AUTHENTICATION": [],
    "COMPONENT_SPLIT_REQUEST": True,
    "APPEND_COMPONENTS": {"schemas": {"Problem": PROBLEM_SCHEMA}},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SWAGGER_UI_SETTINGS": {"persistAuthorization": False, "displayRequestDuration": True},
}

# --- observation ------------------------------------------------------------------------------
METRICS_TOKEN: Final = ENV.secret(
    "ZMETRICS_TOKEN", help_text="Bearer token for /metrics from elsewhere than loopback."
)
LOG_FORMAT: Final = ENV.choice(
    "ZLOG_FORMAT",
    "json" if IS_PRODUCTION else "console",
    ("json", "console"),
    help_text="Log lines as JSON, or for reading.",
)
LOG_LEVEL: Final = ENV.choice(
    "ZLOG_LEVEL",
    "info",
    ("debug", "info", "warning", "error"),
    help_text="Least severity that is logged.",
)
LOGGING_CONFIG: Final = None
logging_config(LOG_FORMAT, LOG_LEVEL)

UNFOLD: Final = {"SITE_TITLE": "Zonal", "SITE_HEADER": "Zonal", "SHOW_VIEW_ON_SITE": False}
