"""Django's settings, from the tables in each app's ``conf.py`` and the environment."""

import os
import secrets
from pathlib import Path
from typing import Final

from cryptography.fernet import Fernet

from accounts import conf as accounts_conf
from audit.conf import AuditSettings
from billing import conf as billing_conf
from common import conf
from common.logs import logging_config
from common.machine.folders import data_dir_from
from common.openapi.document import SPECTACULAR_SETTINGS  # noqa: F401 - a setting
from common.settings import env as environment
from common.settings.table import load
from common.settings.unknown_names import unknown_names
from edgecache import conf as cache_conf
from edgecache.brain.conf import brain as brain_conf
from environments.conf import EnvironmentSettings
from oauth import conf as oauth_conf
from operations import conf_modules
from operations.backup import conf as backup_conf
from organizations import conf as organizations_conf
from outbox import conf as outbox_conf
from recovery.conf import RecoverySettings
from sqlgateway.conf import SqlSettings
from twofactor import conf as twofactor_conf

ENV: Final = environment.from_process()
BASE_DIR: Final = Path(__file__).resolve().parent.parent
DATA_DIR: Final = data_dir_from(os.environ)
IS_PRODUCTION: Final = environment.is_production(os.environ)
UNKNOWN_SETTINGS: Final = tuple(
    unknown_names((*ENV.variables, *ENV.fallback), conf_modules.variables())
)

SERVER: Final = load(conf.ServerSettings, ENV)
PORT: Final = SERVER.port
BIND: Final = SERVER.bind or f"127.0.0.1:{PORT}"
WEB_WORKERS: Final = SERVER.web_workers
WEB_THREADS: Final = SERVER.web_threads
SERVICE_NAME: Final = SERVER.service_name
TRACES_URL: Final = SERVER.traces_url
TRACES_SHARE: Final = SERVER.traces_share
TRUSTED_PROXIES: Final = SERVER.trusted_proxies
DEBUG: Final = False
DEVELOPMENT_HOSTS: Final = ("localhost", "127.0.0.1", "[::1]", "testserver")
ALLOWED_HOSTS = list(SERVER.allowed_hosts or (() if IS_PRODUCTION else DEVELOPMENT_HOSTS))
PUBLIC_URL: Final = SERVER.public_url or conf.default_public_url(
    ALLOWED_HOSTS, port=PORT, is_production=IS_PRODUCTION
)

SECRETS: Final = load(conf.SecretSettings, ENV)
SECRET_KEY: Final = SECRETS.secret_key or secrets.token_urlsafe(48)
SECRET_KEYS: Final = SECRETS.encryption_keys or (Fernet.generate_key().decode(),)
METRICS_TOKEN: Final = SECRETS.metrics_token

# --- databases --------------------------------------------------------------------------------
DATABASE: Final = load(conf.DatabaseSettings, ENV)
DATABASE_URL: Final = DATABASE.url
DATABASES = {"default": conf.control_database(DATABASE_URL, DATABASE.pool_size)}
DEFAULT_AUTO_FIELD: Final = "django.db.models.BigAutoField"

# --- the apps' own ----------------------------------------------------------------------------
ACCOUNTS: Final = accounts_conf.read(ENV, secret_key=SECRET_KEY)
OAUTH: Final = oauth_conf.read(ENV, public_url=PUBLIC_URL)
TWOFACTOR: Final = twofactor_conf.read(ENV, ALLOWED_HOSTS, port=PORT, is_production=IS_PRODUCTION)
RECOVERY: Final = load(RecoverySettings, ENV)
ENVIRONMENTS: Final = load(EnvironmentSettings, ENV)
AUDIT: Final = load(AuditSettings, ENV)
ORGANIZATIONS: Final = organizations_conf.read(ENV, data_dir=DATA_DIR)
SQL: Final = load(SqlSettings, ENV)
BACKUP: Final = backup_conf.read(ENV)

# --- edge cache -------------------------------------------------------------------------------
HAS_CACHE: Final = "cache" in SERVER.features
CACHE_APPS: Final = [
    "edgecache.apps.EdgeCacheConfig",
    "edgecache.brain.apps.BrainConfig",
    "billing.apps.BillingConfig",
]
BRAIN: Final = brain_conf.read(
    ENV, data_dir=DATA_DIR, database_url=DATABASE_URL, is_production=IS_PRODUCTION
)
CACHE: Final = cache_conf.read(ENV, BRAIN)
BILLING: Final = load(billing_conf.BillingSettings, ENV)
STRIPE: Final = billing_conf.stripe(ENV, BILLING)
STRIPE_PAYOUTS: Final = {"stripe": "billing.stripe.connect.StripeConnect"}
STRIPE_CHECKOUT: Final = "billing.stripe.checkout.checkout"
STRIPE_EVENTS: Final = {"stripe": "billing.stripe.events.receive"}
# Payment providers for credits, and the readers of their events, by name.
TOP_UP_PROVIDER: Final = STRIPE_CHECKOUT if STRIPE.secret_key else ""
PAYMENT_WEBHOOKS: Final = STRIPE_EVENTS if STRIPE.secret_key else {}
# Payout methods for node operators, by name.
PAYOUT_METHODS: Final = {
    "manual": "billing.payouts.manual.Manual",
    **(STRIPE_PAYOUTS if STRIPE.secret_key else {}),
}
if BRAIN.database_url != DATABASE_URL:
    DATABASES["brain"] = conf.control_database(BRAIN.database_url, DATABASE.pool_size)
    DATABASE_ROUTERS: Final = ["edgecache.brain.router.BrainRouter"]

# --- applications -----------------------------------------------------------------------------
INSTALLED_APPS: Final = [
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "platform_site.apps.AdminConfig",
    # Before the apps whose commands it extends or replaces.
    "operations.apps.OperationsConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "procrastinate.contrib.django",
    "platform_site.apps.PlatformConfig",
    "console.apps.ConsoleConfig",
    "common.apps.CommonConfig",
    "audit.apps.AuditConfig",
    "environments.apps.EnvironmentsConfig",
    "outbox.apps.OutboxConfig",
    "accounts.apps.AccountsConfig",
    "organizations.apps.OrganizationsConfig",
    "oauth.apps.OAuthConfig",
    "recovery.apps.RecoveryConfig",
    "twofactor.apps.TwoFactorConfig",
    "sqlgateway.apps.SqlGatewayConfig",
    *(CACHE_APPS if HAS_CACHE else []),
]
MIDDLEWARE: Final = [
    "common.middleware.RequestMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "common.middleware.PagesSessions",
    "django.middleware.csrf.CsrfViewMiddleware",
    "common.middleware.PagesUsers",
    "common.middleware.PagesMessages",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "console.middleware.ConsoleMiddleware",
    "accounts.middleware.PrincipalMiddleware",
    "environments.middleware.ScopeMiddleware",
]
PASSWORD_HASHERS: Final = ["accounts.passwords.TunedArgon2Hasher"]
AUTH_USER_MODEL: Final = "accounts.User"
SILENCED_SYSTEM_CHECKS: Final = [
    # The e-mail is unique by an index on its upper case, which this check does not recognize.
    "auth.W004",
    # HSTS for the names below and browsers' lists bind other services: ZHSTS asks for them.
    "security.W005",
    "security.W021",
]
AUTHENTICATION_BACKENDS: Final = ["accounts.backends.StaffBackend"]

ROOT_URLCONF: Final = "platform_site.urls"
WSGI_APPLICATION: Final = "platform_site.wsgi.application"
APPEND_SLASH: Final = False
USE_TZ: Final = True
TIME_ZONE: Final = "UTC"
LANGUAGE_CODE: Final = "en-us"
USE_I18N: Final = False
FORMAT_MODULE_PATH: Final = "platform_site.staff"
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
STATIC_ROOT: Final = SERVER.static_root or None
STATICFILES_DIRS: Final = [BASE_DIR / "platform_site" / "staff" / "static"]
WHITENOISE_USE_FINDERS: Final = STATIC_ROOT is None
WHITENOISE_KEEP_ONLY_HASHED_FILES: Final = True
STORAGES: Final = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "console.static_files.HashedFiles"
        if STATIC_ROOT
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
DATA_UPLOAD_MAX_MEMORY_SIZE: Final = 2**21

# --- mail and SMS -----------------------------------------------------------------------------
MAIL: Final = load(outbox_conf.MailSettings, ENV)
EMAIL_BACKEND: Final = MAIL.backend.path
MAIL_OPTIONS: Final = MAIL.backend.options
DEFAULT_FROM_EMAIL: Final = MAIL.sender
SMS: Final = outbox_conf.sms_backend(ENV, is_production=IS_PRODUCTION)
SMS_BACKEND: Final = SMS.path
SMS_OPTIONS: Final = SMS.options
PROCRASTINATE_ON_APP_READY: Final = "common.task_worker.prepare"
# Besides the ``tasks`` of each app.
PROCRASTINATE_IMPORT_PATHS: Final = [
    "sqlgateway.databases.tasks",
]

# --- transport --------------------------------------------------------------------------------
HSTS: Final = SERVER.hsts or ("host" if IS_PRODUCTION else "none")
SECURE_SSL_REDIRECT: Final = HSTS != "none"
SECURE_HSTS_SECONDS: Final = 31536000 if SECURE_SSL_REDIRECT else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS: Final = HSTS in {"subdomains", "preload"}
SECURE_HSTS_PRELOAD: Final = HSTS == "preload"
# Load balancers and supervisors use plain HTTP, from the internal network.
SECURE_REDIRECT_EXEMPT: Final = [r"^healthz$", r"^readyz$", r"^metrics$"]
# Any client can send the header, so it is trusted only behind the platform's own proxies.
SECURE_PROXY_SSL_HEADER: Final = ("HTTP_X_FORWARDED_PROTO", "https") if TRUSTED_PROXIES else None
SESSION_COOKIE_SECURE: Final = SECURE_SSL_REDIRECT
CSRF_COOKIE_SECURE: Final = SECURE_SSL_REDIRECT
SESSION_COOKIE_AGE: Final = 43200
X_FRAME_OPTIONS: Final = "DENY"

# --- API --------------------------------------------------------------------------------------
REST_FRAMEWORK: Final = {
    "EXCEPTION_HANDLER": "common.problems.handle",
    "DEFAULT_PARSER_CLASSES": ["common.api.bodies.StrictJsonParser"],
    "DEFAULT_RENDERER_CLASSES": ["common.api.bodies.OrjsonRenderer"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["common.api.authentication.PrincipalAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["common.permissions.HasAccess"],
    "DEFAULT_SCHEMA_CLASS": "common.openapi.schema.Schema",
    "UNAUTHENTICATED_USER": None,
    "UNAUTHENTICATED_TOKEN": None,
}

# --- observation ------------------------------------------------------------------------------
LOGS: Final = load(conf.LogSettings, ENV)
LOG_FORMAT: Final = LOGS.format or ("json" if IS_PRODUCTION else "console")
LOG_LEVEL: Final = LOGS.level
LOGGING_CONFIG: Final = None
logging_config(LOG_FORMAT, LOG_LEVEL)

# --- admin ------------------------------------------------------------------------------------
UNFOLD: Final = {
    "SITE_TITLE": "Zonal",
    "SITE_HEADER": "Zonal",
    "SHOW_VIEW_ON_SITE": False,
    # Of Django's log, which has nothing: what staff do is in the audit trail.
    "SHOW_HISTORY": False,
    "DASHBOARD_CALLBACK": "platform_site.staff.dashboard.fill",
    "STYLES": ["platform_site.staff.unfold_settings.style"],
    "SCRIPTS": [
        "platform_site.staff.unfold_settings.landmarks",
        "platform_site.staff.unfold_settings.restored",
    ],
    "SIDEBAR": {
        "navigation": "platform_site.staff.unfold_settings.navigation",
        "show_search": True,
    },
}
