"""Django's settings: every value from the environment through ``platform_site.env``."""

import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet

from edgecache import conf as cache_conf
from edgecache.brain import conf as brain_conf
from platform_site import env as environment
from platform_site.lib import (
    account_settings,
    address_settings,
    database_settings,
    delivery_settings,
    passkey_settings,
    provider_settings,
    sql_settings,
    token_settings,
)
from platform_site.lib.logs import logging_config

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
PUBLIC_URL: Final = address_settings.public_url(
    ENV, ALLOWED_HOSTS, port=PORT, is_production=IS_PRODUCTION
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
KEYS: Final = token_settings.keys(ENV, SECRET_KEY)
JWT_SECRETS: Final = KEYS.access
JWT_REFRESH_SECRETS: Final = KEYS.refresh
JWT_RETIREMENTS: Final = KEYS.retirements
MFA_SECRETS: Final = KEYS.mfa
LIFETIMES: Final = token_settings.lifetimes(ENV)
JWT_ACCESS_TTL_S: Final = LIFETIMES.access_s
JWT_REFRESH_TTL_S: Final = LIFETIMES.refresh_s
JWT_REFRESH_GRACE_S: Final = LIFETIMES.refresh_grace_s
SESSION_MAX_S: Final = LIFETIMES.session_max_s
SESSIONS_PER_USER: Final = LIFETIMES.sessions_per_user
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
LIMITS: Final = account_settings.limits(ENV)
LIMIT_SIGNUPS_PER_HOUR: Final = LIMITS.signups_per_hour
LIMIT_LOGINS_PER_ADDRESS: Final = LIMITS.logins_per_address
LIMIT_LOGINS_PER_ACCOUNT: Final = LIMITS.logins_per_account
LIMIT_PASSKEY_STARTS_PER_ADDRESS: Final = LIMITS.passkey_starts_per_address
MFA_SENDS_PER_RECEIVER: Final = LIMITS.sends_per_receiver
MFA_SENDS_PER_ORGANIZATION: Final = LIMITS.sends_per_organization
MFA_SENDS_PER_ADDRESS: Final = LIMITS.sends_per_address
LIMIT_RECOVERIES_PER_ADDRESS: Final = LIMITS.recoveries_per_address
LIMIT_RECOVERIES_PER_ACCOUNT: Final = LIMITS.recoveries_per_account
INVITATIONS_PER_DAY: Final = LIMITS.invitations_per_day
INVITATIONS_OPEN: Final = LIMITS.invitations_open
LIMIT_INVITATION_TRIES_PER_ADDRESS: Final = LIMITS.invitation_tries_per_address
RECOVERY_DELAY_S: Final = account_settings.recovery_delay_s(ENV)

# --- passkeys ---------------------------------------------------------------------------------
WEBAUTHN_ORIGINS: Final = passkey_settings.origins(
    ENV, ALLOWED_HOSTS, port=PORT, is_production=IS_PRODUCTION
)
WEBAUTHN_RP_ID: Final = passkey_settings.rp_id(ENV, WEBAUTHN_ORIGINS)

# --- external sign-in -------------------------------------------------------------------------
EXTERNAL: Final = provider_settings.read(ENV, public_url=PUBLIC_URL)
OAUTH_PROVIDERS: Final = EXTERNAL.providers
OAUTH_REDIRECT_BASE_URL: Final = EXTERNAL.redirect_base_url
OAUTH_REDIRECTS: Final = EXTERNAL.redirects
LIMIT_OAUTH_STARTS_PER_ADDRESS: Final = EXTERNAL.starts_per_address
OAUTH_TIMEOUT_S: Final = EXTERNAL.timeout_s
DNS_RESOLVERS: Final = EXTERNAL.resolvers

# --- passwords --------------------------------------------------------------------------------
ARGON2: Final = account_settings.argon2(ENV)
ARGON2_MEMORY_KIB: Final = ARGON2.memory_kib
ARGON2_TIME_COST: Final = ARGON2.time_cost
ARGON2_PARALLELISM: Final = ARGON2.parallelism
ARGON2_CONCURRENCY: Final = ARGON2.concurrency
PASSWORD_HASHERS: Final = ["accounts.passwords.TunedArgon2Hasher"]

# --- databases --------------------------------------------------------------------------------
DATABASE_URL: Final = database_settings.control_url(ENV)
DB_POOL_SIZE: Final = database_settings.pool_size(ENV)
DATABASES = {"default": database_settings.control_database(DATABASE_URL, DB_POOL_SIZE)}
SQL_CLUSTER_URL: Final = database_settings.cluster_url(ENV)
# The gateway's limits, a table of their own: SQL_TIMEOUT_MS and the like.
globals().update(sql_settings.read(ENV))
DEFAULT_AUTO_FIELD: Final = "django.db.models.BigAutoField"

# --- edge cache -------------------------------------------------------------------------------
FEATURES: Final = address_settings.features(ENV)
HAS_CACHE: Final = "cache" in FEATURES
CACHE_APPS: Final = ["edgecache.apps.EdgeCacheConfig", "edgecache.brain.apps.BrainConfig"]
BRAIN: Final = brain_conf.read(
    ENV, data_dir=DATA_DIR, database_url=DATABASE_URL, is_production=IS_PRODUCTION
)
CACHE: Final = cache_conf.read(ENV, BRAIN)
if BRAIN.database_url != DATABASE_URL:
    DATABASES["brain"] = database_settings.control_database(BRAIN.database_url, DB_POOL_SIZE)
    DATABASE_ROUTERS: Final = ["edgecache.brain.router.BrainRouter"]

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
    *(CACHE_APPS if HAS_CACHE else []),
]
MIDDLEWARE: Final = [
    "platform_site.lib.requests.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "platform_site.lib.pages.PagesSessions",
    "django.middleware.csrf.CsrfViewMiddleware",
    "platform_site.lib.pages.PagesUsers",
    "platform_site.lib.pages.PagesMessages",
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
    "accounts.tokens.development.authenticate",
    "twofactor.sign_in.pending.authenticate",
    "accounts.sessions.authentication.authenticate",
]
LIFECYCLE_HOOKS: Final = {
    "environment_deleted": [
        "accounts.sessions.sessions.on_environment_deleted",
        "sqlgateway.provisioning.on_environment_deleted",
        *(["edgecache.api.environment_removal.on_environment_deleted"] if HAS_CACHE else []),
    ],
    "environment_dropped": [
        "sqlgateway.provisioning.on_environment_dropped",
        *(["edgecache.api.environment_removal.on_environment_dropped"] if HAS_CACHE else []),
    ],
    "trust_ended": ["twofactor.account_hooks.on_trust_ended"],
    "user_stripped": [
        "accounts.oauth.identities.on_user_stripped",
        "recovery.account_access.on_user_stripped",
    ],
    "factors_stripped": ["twofactor.account_hooks.on_factors_stripped"],
    "user_removed": ["twofactor.account_hooks.on_user_removed"],
}
# Whether an account must not be opened by its mailbox alone.
SECOND_FACTOR_CHECK: Final = "twofactor.factors.holdings.has_proper_factor"
LOGIN_STAGES: Final = ["twofactor.sign_in.stage.second_factor"]
# Besides passwords and linked identities: what signs a user in, asked before the last one goes.
OTHER_WAYS_IN: Final = ["twofactor.webauthn.passkeys.can_sign_in"]
# What lets somebody try a password while strangers' guesses slow the account.
DEVICE_VOUCHER: Final = "twofactor.trusted_devices.devices.vouches"
FRESH_PROOF_GUARD: Final = "twofactor.challenges.step_up.require_recent_proof"
AUDIT_RECORDER: Final = "accounts.audit.audit.record_request"
DENIAL_RECORDER: Final = "accounts.audit.denials.record"
AUDIT_RETENTION_DAYS: Final = account_settings.audit_retention_days(ENV)
# What `pruneexpired` runs at once and the queue runs by itself.
PRUNING_TASKS: Final = [
    "accounts.tasks.forget_expired",
    "accounts.delivery.tasks.tend_deliveries",
    "accounts.oauth.tasks.delete_expired",
    "twofactor.tasks.forget_expired",
    "twofactor.webauthn.tasks.forget_expired",
    "recovery.tasks.forget_expired",
    "environments.tasks.drop_expired_environments",
]
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
PROCRASTINATE_IMPORT_PATHS: Final = [
    "accounts.delivery.tasks",
    "accounts.oauth.tasks",
    "twofactor.webauthn.tasks",
]

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
    "DEFAULT_SCHEMA_CLASS": "platform_site.lib.openapi.schema.Schema",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}
SPECTACULAR_SETTINGS: Final = {
    "TITLE": "Zonal",
    "DESCRIPTION": "Accounts, environments and SQL over HTTP. Errors are problem documents "
    "(RFC 9457) with a stable `code`.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    # Not drf-spectacular's own hook, which makes a component of each set of choices: `status` of
    # one resource and `status` of another would compete for its name.
    "POSTPROCESSING_HOOKS": ["platform_site.lib.openapi.problems.add_components"],
    "SCHEMA_PATH_PREFIX": "/v1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": [],
    "SERVE_AUTHENTICATION": [],
    "COMPONENT_SPLIT_REQUEST": True,
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
