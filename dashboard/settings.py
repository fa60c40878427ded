"""Django's settings. Everything that differs between machines comes from the environment.

`manage.py up` sets these variables for its children; elsewhere the operator does:

=========================== ====================================================================
DATABASE_URL                PostgreSQL, as the role that the application runs as
DATABASE_OWNER_URL          the same database as its owner; only `migrate` needs it
SCHEMADESK_DATABASE_WAIT    seconds that a request waits for a database that is away (2), then it is answered 503
REDIS_URL                   Valkey or Redis: `redis://…` or `unix:///path?db=0`
KAFKA_BOOTSTRAP             the broker of the demo and of `up`
SPARK_REMOTE                `sc://host:port/;token=…`, the Spark Connect server that scans run on
SECRET_KEY_FILE, SECRET_KEY the key that signs sessions; the file wins
SCHEMADESK_DATA             folder of what `up` keeps
SCHEMADESK_UP               "1" under `up` on one's own machine: what is open there stays closed elsewhere
SCHEMADESK_HOSTS            comma-separated host names the site answers to
SCHEMADESK_TRUSTED_PROXIES  comma-separated addresses and networks of the proxies in front, or how many there are: their
                            X-Forwarded-For and X-Forwarded-Proto are believed (none)
SCHEMADESK_CHECKPOINT_ROOTS colon-separated folders below which checkpoints may be read
SCHEMADESK_CHECKPOINT_PROTOCOLS comma-separated file systems that checkpoints may be on: `file` (the default), `s3`
SCHEMADESK_CHECKPOINT_ADDRESSES comma-separated addresses (s3://bucket/folder) below which checkpoints may be read
SCHEMADESK_CHECKPOINT_SPARK_ROOTS comma-separated folders and addresses that the Spark server itself can open; not
                            set: the folders of SCHEMADESK_CHECKPOINT_ROOTS
SPRING_PATH                 root path of the Spring dialect (`spring/`); never the root of the site
SPRING_ALLOW_DELETION       "1" lets the Spring dialect delete, for good; its released server's default is off too
SCHEMADESK_EGRESS_ALLOW     comma-separated hosts, addresses and networks (each may have :port) that outgoing calls
                            may go to although they are on this machine or in another guarded range
SCHEMADESK_EGRESS_PRIVATE   "0" refuses private networks too, unless listed
SCHEMADESK_SECRETS_DIR      folder of secrets for outgoing calls; SCHEMADESK_SECRET_NAME is one without a file
OIDC_ISSUER                 address of an OpenID Connect issuer that people sign in through; then approvals take it
OIDC_CLIENT_ID, OIDC_SECRET the client there, and the *name* of its secret in SCHEMADESK_SECRETS_DIR
OIDC_SCOPES                 what is asked for (`openid profile email`); OIDC_NAME is what the button calls it
OIDC_GROUPS                 `claimed=group,…`: which values of OIDC_GROUPS_CLAIM (`groups`) mean which of our groups
OIDC_REQUIRED               "1" lets nobody sign in with a password
SCHEMADESK_HOT_PATH         "1" answers what was answered before without Django while nothing has changed ("1" under
                            `up`, where all programs have it; "0" elsewhere)
SCHEMADESK_HOT_PATH_FILE    what the programs of one host share for it (SCHEMADESK_DATA/run/generation)
SCHEMADESK_HOT_PATH_MIB     memory for answers, of each web process (64)
SCHEMADESK_HOT_PATH_HOSTS   "1": other hosts write to the database too, and agree with this one over REDIS_URL; not set:
                            so it is where REDIS_URL has a host
DELETED_COPY_DAYS           days that a copy of what is deleted for good is kept (30; 0: none is)
SCHEMADESK_URL              where people reach the site, for links in mails and chat messages (none: no links)
SCHEMADESK_MAIL_HOST        the mail server; none: no mail is sent
SCHEMADESK_MAIL_PORT, _USER, _PASSWORD (or _PASSWORD_FILE), _TLS (starttls, tls, none), _FROM how mail is sent
ANONYMOUS_ROLE              role of a program without a token; honoured only under `up` (there: steward)
=========================== ====================================================================
"""

from __future__ import annotations

import math
import os
import secrets
import sys
from pathlib import Path
from typing import Any

from django.conf.locale import LANG_INFO
from django.core.exceptions import ImproperlyConfigured
from psycopg.conninfo import conninfo_to_dict

from dashboard.client_address import TrustedProxies
from dashboard.database import circuit_breaker
from dashboard.runtime.valkey import celery_form

BASE_DIR = Path(__file__).resolve().parent.parent
DATA_DIR = Path(os.environ.get("SCHEMADESK_DATA", BASE_DIR / "var"))
UNDER_UP = os.environ.get("SCHEMADESK_UP") == "1"
DEBUG = False


def _secret_key() -> str:
    path = os.environ.get("SECRET_KEY_FILE")
    key = Path(path).read_text().strip() if path else os.environ.get("SECRET_KEY", "")
    if key:
        return key
    if Path(sys.argv[0]).name == "manage.py" or "pytest" in sys.modules:
        return secrets.token_urlsafe(50)  # a command signs nothing that has to outlive it
    raise ImproperlyConfigured("set SECRET_KEY_FILE (a file with 50 or more random characters) or SECRET_KEY")


SECRET_KEY = _secret_key()
ALLOWED_HOSTS = [host for host in os.environ.get("SCHEMADESK_HOSTS", "localhost,127.0.0.1,[::1]").split(",") if host]
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if host not in ("localhost", "127.0.0.1", "[::1]")]


#: parameters go to the server beside the statement, which it keeps planned from its third use in a connection on
PREPARED = {"server_side_binding": True, "prepare_threshold": 3}


#: Less than clients wait for an answer (five seconds and more), and enough to pass over a quick restart.
DATABASE_WAIT = max(0.1, float(os.environ.get("SCHEMADESK_DATABASE_WAIT", "2")))
#: of a server that is gone without a word, a connection over a network hears within some ten seconds
REACHING = {
    "connect_timeout": math.ceil(DATABASE_WAIT),
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def _database(url: str) -> dict[str, Any]:
    """Django's database entry from a libpq URL, Unix sockets included."""
    parts = conninfo_to_dict(url)
    options = {key: str(parts.pop(key, "") or "") for key in ("dbname", "user", "password", "host", "port")}
    return {
        "ENGINE": "dashboard.database",
        "NAME": options["dbname"],
        "USER": options["user"],
        "PASSWORD": options["password"],
        "HOST": options["host"],
        "PORT": options["port"],
        "OPTIONS": {**REACHING, **parts, **PREPARED, **({"pool": POOL} if USE_POOL else {})},
        "CONN_HEALTH_CHECKS": not USE_POOL,
        "ATOMIC_REQUESTS": False,
    }


OWNER_COMMANDS = ("migrate", "flush", "sqlmigrate", "makemigrations")
_as_owner = sys.argv[1:2] and sys.argv[1] in OWNER_COMMANDS
USE_POOL = UNDER_UP and not _as_owner and "pytest" not in sys.modules
POOL = {
    "min_size": 1,
    "max_size": 8,
    "timeout": DATABASE_WAIT,
    "reconnect_timeout": circuit_breaker.BETWEEN,
    "reconnect_failed": circuit_breaker.try_again,
}
_database_url = os.environ.get("DATABASE_URL", "postgresql:///schemadesk")
if _as_owner:
    _database_url = os.environ.get("DATABASE_OWNER_URL", _database_url)
DATABASES = {"default": _database(_database_url)}
# The role that gets no rights on the audit table but to read; granted after every migration.
DATABASE_APPLICATION_ROLE = os.environ.get("DATABASE_APPLICATION_ROLE", "schemadesk_app")

REDIS_URL = os.environ.get("REDIS_URL", "redis://127.0.0.1:6379/0")
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {"socket_connect_timeout": 2, "socket_timeout": 2},
    }
}

# Answers before Django (docs/decisions/0012-answers-before-django.md). Every program of a host uses the one file.
HOT_PATH = os.environ.get("SCHEMADESK_HOT_PATH", "1" if UNDER_UP and "pytest" not in sys.modules else "0") == "1"
HOT_PATH_FILE = Path(os.environ.get("SCHEMADESK_HOT_PATH_FILE", DATA_DIR / "run" / "generation"))
HOT_PATH_MIB = int(os.environ.get("SCHEMADESK_HOT_PATH_MIB", "64"))
# A Valkey that is on a socket is nobody else's: then there is one host.
HOT_PATH_HOSTS = (
    os.environ.get("SCHEMADESK_HOT_PATH_HOSTS", "0" if not os.environ.get("REDIS_URL", "").startswith("redis") else "1")
    == "1"
)

CELERY_BROKER_URL = celery_form(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {
    "registry.drift.tasks.run_scan": {"queue": "scans"},
    "dashboard.tasks.run_demo": {"queue": "scans"},
}
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker outlives whatever time Valkey is away for
# A Valkey that is there and says nothing holds up nobody for long; rows say what is to be done, whoever was told.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "socket_timeout": 5, "max_retries": 0}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SYNC_EVERY = 50  # tasks, which are due once a second: how `up` sees that beat works
CELERY_BEAT_SCHEDULE = {
    "queue-due-scans": {"task": "registry.drift.tasks.queue_due_scans", "schedule": 5.0},
    "queue-due-syncs": {"task": "registry.subjects.tasks.queue_due_syncs", "schedule": 15.0},
    "seal-audit": {"task": "registry.audit.tasks.seal_events", "schedule": 30.0},
    "queue-due-deliveries": {"task": "registry.notifications.tasks.queue_due_deliveries", "schedule": 5.0},
    "queue-due-digests": {"task": "registry.notifications.tasks.queue_due_digests", "schedule": 60.0},
    "prune-notices": {"task": "registry.notifications.tasks.prune_notices", "schedule": 3600.0},
    "prune-copies": {"task": "registry.subjects.tasks.prune_copies", "schedule": 3600.0},
    "prune-deployments": {"task": "registry.drift.tasks.prune_deployments", "schedule": 3600.0},
    "refresh-outlooks": {"task": "registry.promotions.tasks.refresh_outlooks", "schedule": 20.0},
    "apply-due": {"task": "registry.promotions.tasks.apply_due", "schedule": 15.0},
    "index-stale-subjects": {"task": "registry.search.tasks.index_stale", "schedule": 3.0},
    "sweep-search-index": {"task": "registry.search.tasks.sweep_index", "schedule": 900.0},
    "reclaim-lost-scans": {"task": "registry.drift.tasks.reclaim_lost_scans", "schedule": 15.0},
}

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "csp",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "registry.audit",
    "registry.access",
    "registry.subjects",
    "registry.promotions",
    "registry.drift",
    "registry.streams",
    "registry.notifications",
    "registry.search",
    "dashboard",
]
MIDDLEWARE = [
    "dashboard.client_address.ClientAddressMiddleware",
    "registry.api.request_reading.RawPathMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dashboard.middleware.PackedPagesMiddleware",
    "dashboard.middleware.HostCheckMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dashboard.middleware.ViewerZoneMiddleware",
    "dashboard.middleware.ViewerLanguageMiddleware",
    "dashboard.middleware.ErrorPageMiddleware",
]
ROOT_URLCONF = "dashboard.urls"
APPEND_SLASH = False
WSGI_APPLICATION = "dashboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
# Two libraries are called i18n on purpose (dashboard/templatetags/i18n.py).
SILENCED_SYSTEM_CHECKS = ["templates.W003"]

AUTH_USER_MODEL = "access.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
ACCOUNT_ADAPTER = "dashboard.people.sign_in.ClosedAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# What is counted of failed sign-ins: dashboard/people/sign_in.py. One that succeeds isn't counted: nobody may use it up
# for others who share an address.
ACCOUNT_RATE_LIMITS = {"login_failed": "", "login": ""}
# The proxies whose word is taken for where a request comes from (dashboard/client_address.py).
TRUSTED_PROXIES = TrustedProxies.parse(os.environ.get("SCHEMADESK_TRUSTED_PROXIES", ""))
SOCIALACCOUNT_ADAPTER = "dashboard.people.oidc.IssuerAccounts"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
# Sign-in through an OpenID Connect issuer (docs/how-to/people.md).
OIDC_ISSUER = os.environ.get("OIDC_ISSUER", "")
OIDC_CLIENT_ID = os.environ.get("OIDC_CLIENT_ID", "")
OIDC_SECRET = os.environ.get("OIDC_SECRET", "")
OIDC_NAME = os.environ.get("OIDC_NAME", "single sign-on")
OIDC_SCOPES = tuple(os.environ.get("OIDC_SCOPES", "openid profile email").split())
OIDC_GROUPS_CLAIM = os.environ.get("OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS = tuple(
    (claimed.strip(), group.strip())
    for claimed, _, group in (pair.partition("=") for pair in os.environ.get("OIDC_GROUPS", "").split(","))
    if claimed.strip() and group.strip()
)
OIDC_REQUIRED = bool(OIDC_ISSUER) and os.environ.get("OIDC_REQUIRED", "") == "1"
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    raise ImproperlyConfigured("set OIDC_CLIENT_ID too: the name that OIDC_ISSUER knows this installation by")
LOGIN_URL = "/ui/accounts/login/"
LOGIN_REDIRECT_URL = "/ui/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/ui/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]

STATIC_URL = "/ui/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = os.environ.get("SCHEMADESK_STATIC_ROOT") or None
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 3600

_self = ["'self'"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": _self,
        "style-src": _self,
        "img-src": [*_self, "data:"],
        "font-src": _self,
        "connect-src": _self,
        "form-action": _self,
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    }
}
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not UNDER_UP and "pytest" not in sys.modules
SESSION_COOKIE_NAME = "schemadesk_session"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
FILE_UPLOAD_HANDLERS = ["dashboard.upload_handler.SmallFileHandler"]  # nothing that is sent is written to a disk

LANGUAGE_CODE = "en"  # the language of the texts in code and templates, and of the APIs
LOCALE_PATHS = [BASE_DIR / "locale"]


def _languages() -> list[tuple[str, str]]:
    """English, and every language that has a compiled catalogue (docs/how-to/translate.md)."""
    codes = [path.parent.parent.name.lower().replace("_", "-") for path in LOCALE_PATHS[0].glob("*/LC_MESSAGES/*.mo")]
    return [(code, LANG_INFO.get(code, {}).get("name", code)) for code in ("en", *sorted(codes))]


LANGUAGES = _languages()
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["registry.api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],  # the services decide, for every door
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["registry.api.request_reading.BoundedJsonParser"],
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # `format` is a parameter of Confluent's API
    "EXCEPTION_HANDLER": "registry.api.product.base.handle",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Schemadesk",
    "DESCRIPTION": "Schemas, promotions, scans and findings.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
}

LOG_LEVEL = os.environ.get("LOG_LEVEL", "INFO")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "{asctime} {levelname} {name} {message}", "style": "{"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "filters": {"sparing": {"()": circuit_breaker.LogThrottle}},
    "loggers": {
        **{name: {"level": "WARNING"} for name in ("httpx", "httpx2", "httpcore2", "py4j")},
        "psycopg.pool": {"level": "WARNING", "filters": ["sparing"]},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
}

# The product's own settings
DEFAULT_PROJECT = os.environ.get("SCHEMADESK_PROJECT", "local")
DEFAULT_LOCATION = os.environ.get("SCHEMADESK_LOCATION", "local")
DEFAULT_REGISTRY = os.environ.get("SCHEMADESK_REGISTRY", "dev")
ANONYMOUS_ROLE = os.environ.get("ANONYMOUS_ROLE", "steward") if UNDER_UP else ""
INCOMPATIBLE_ERROR_CODE = int(os.environ.get("INCOMPATIBLE_ERROR_CODE", "409"))
SPRING_PATH = os.environ.get("SPRING_PATH", "spring/")
SPRING_ALLOW_DELETION = os.environ.get("SPRING_ALLOW_DELETION", "") == "1"
# Costly schemas are read and compared in children: how many, how long a request may use one, how much memory each has.
SCHEMA_CHILDREN = int(os.environ.get("SCHEMA_CHILDREN", "2"))
SCHEMA_SECONDS = float(os.environ.get("SCHEMA_SECONDS", "2"))
SCHEMA_MEMORY_MIB = int(os.environ.get("SCHEMA_MEMORY_MIB", "512"))
SCHEMA_MAX_BYTES = int(os.environ.get("SCHEMA_MAX_BYTES", "1000000"))
# Tags that mean personal data, in any case of letters: values of what has one are masked (docs/how-to/describe.md).
PERSONAL_TAGS = tuple(os.environ.get("PERSONAL_TAGS", "PII,SENSITIVE,GDPR,PERSONAL").replace(",", " ").split())
MODE_MUTABILITY = os.environ.get("MODE_MUTABILITY", "1") == "1"  # "0": modes can't be changed through an API
COMMIT_ID = os.environ.get("COMMIT_ID", "")
KAFKA_BOOTSTRAP = os.environ.get("KAFKA_BOOTSTRAP", "")
SPARK_REMOTE = os.environ.get("SPARK_REMOTE", "")
CHECKPOINT_ROOTS = [
    Path(root)
    for root in os.environ.get("SCHEMADESK_CHECKPOINT_ROOTS", str(DATA_DIR / "checkpoints")).split(":")
    if root
]
CHECKPOINT_PROTOCOLS = tuple(
    entry.strip().lower()
    for entry in os.environ.get("SCHEMADESK_CHECKPOINT_PROTOCOLS", "file").split(",")
    if entry.strip()
)
CHECKPOINT_ADDRESSES = tuple(
    entry.strip() for entry in os.environ.get("SCHEMADESK_CHECKPOINT_ADDRESSES", "").split(",") if entry.strip()
)
CHECKPOINT_SPARK_ROOTS = tuple(
    entry.strip() for entry in os.environ.get("SCHEMADESK_CHECKPOINT_SPARK_ROOTS", "").split(",") if entry.strip()
)
# What our own HTTP clients may connect to, and where the secrets for it are (docs/decisions/0008-outgoing-addresses.md).
EGRESS_ALLOW = tuple(
    entry.strip() for entry in os.environ.get("SCHEMADESK_EGRESS_ALLOW", "").split(",") if entry.strip()
)
EGRESS_REFUSE_PRIVATE = os.environ.get("SCHEMADESK_EGRESS_PRIVATE", "1") == "0"
SECRETS_DIR = Path(os.environ["SCHEMADESK_SECRETS_DIR"]) if os.environ.get("SCHEMADESK_SECRETS_DIR") else None
SCAN_DEADLINE_SECONDS = int(os.environ.get("SCAN_DEADLINE_SECONDS", "600"))
# Where people reach the site: links in mails and in messages of chat programs begin with it; none: they have no link.
SITE_URL = os.environ.get("SCHEMADESK_URL", "").rstrip("/")
# Mail (docs/how-to/notifications.md): without a host nothing is sent, and the pages say so.
EMAIL_HOST = os.environ.get("SCHEMADESK_MAIL_HOST", "")
EMAIL_PORT = int(os.environ.get("SCHEMADESK_MAIL_PORT", "587"))
EMAIL_HOST_USER = os.environ.get("SCHEMADESK_MAIL_USER", "")
_mail_password = os.environ.get("SCHEMADESK_MAIL_PASSWORD_FILE")
EMAIL_HOST_PASSWORD = (
    Path(_mail_password).read_text().strip() if _mail_password else os.environ.get("SCHEMADESK_MAIL_PASSWORD", "")
)
_mail_tls = os.environ.get("SCHEMADESK_MAIL_TLS", "starttls")
if _mail_tls not in ("starttls", "tls", "none"):
    raise ImproperlyConfigured("SCHEMADESK_MAIL_TLS is starttls, tls or none")
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail_tls == "starttls", _mail_tls == "tls"
EMAIL_TIMEOUT = 15
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'dummy'}.EmailBackend"
DEFAULT_FROM_EMAIL = os.environ.get("SCHEMADESK_MAIL_FROM", "schemadesk@localhost")
# How long a copy of what is deleted for good is kept; 0: none is (docs/how-to/retire.md).
DELETED_COPY_DAYS = int(os.environ.get("DELETED_COPY_DAYS", "30"))
WEBHOOK_DISABLE_DAYS = int(os.environ.get("WEBHOOK_DISABLE_DAYS", "5"))  # of failure, then it is switched off
NOTIFICATION_DAYS = int(os.environ.get("NOTIFICATION_DAYS", "90"))  # how long notices and delivery logs are kept
SCAN_MAX_MESSAGES = int(os.environ.get("SCAN_MAX_MESSAGES", "5000000"))
