"""Django's settings. Everything that differs between machines comes from the environment (dashboard/environment.py).

`manage.py up` sets the variables for its children; elsewhere the operator does. docs/reference/settings.md lists them.
"""

from __future__ import annotations

import math
import secrets
import sys
from pathlib import Path
from typing import Any

from django.conf.locale import LANG_INFO
from django.core.exceptions import ImproperlyConfigured
from psycopg import ProgrammingError
from psycopg.conninfo import conninfo_to_dict

from dashboard import environment, resources
from dashboard.client_address import TrustedProxies
from dashboard.database import circuit_breaker
from dashboard.runtime.valkey import celery_form

BASE_DIR = resources.ROOT
PRODUCT_VERSION = resources.product_version()
DATA_DIR = Path(
    environment.text(
        "SCHEMADESK_DATA",
        str(BASE_DIR / "var") if resources.IS_CHECKOUT else "/var/lib/schemadesk",
        "the folder of what `up` keeps",
        shown="`var` beside the code; `/var/lib/schemadesk` if installed as a package",
    )
)
UNDER_UP = environment.switch(
    "SCHEMADESK_UP", "whether this is `up` on one's own machine: what is open there stays closed elsewhere"
)
DEBUG = False


_set_key = environment.secret("SECRET_KEY", "the key that signs sessions, of 50 or more random characters")
HAS_SECRET_KEY = bool(_set_key)  # else a command has a random one


def _secret_key() -> str:
    if HAS_SECRET_KEY:
        return _set_key
    if Path(sys.argv[0]).name in ("manage.py", "schemadesk") or "pytest" in sys.modules:
        return secrets.token_urlsafe(50)  # a command signs nothing that must be valid after it ends
    raise ImproperlyConfigured("set SECRET_KEY_FILE (a file with 50 or more random characters) or SECRET_KEY")


SECRET_KEY = _secret_key()
SECRET_KEY_FALLBACKS = [
    key.strip()
    for key in environment.secret(
        "SECRET_KEY_FALLBACKS", "keys that also count while you rotate SECRET_KEY, separated by commas"
    ).split(",")
    if key.strip()
]
ALLOWED_HOSTS = list(
    environment.words("SCHEMADESK_HOSTS", "localhost,127.0.0.1,[::1]", "the host names that the site answers to")
)
LISTEN = environment.text(
    "SCHEMADESK_LISTEN",
    "127.0.0.1",
    "the address that `schemadesk web` listens on; 0.0.0.0 if the proxy is on another host",
)
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if host not in ("localhost", "127.0.0.1", "[::1]")]


#: parameters are sent separately from the statement, which the server prepares at its third use in a connection
PREPARED = {"server_side_binding": True, "prepare_threshold": 3}


#: Shorter than the timeouts of clients (five seconds and more), and long enough for a quick restart.
DATABASE_WAIT = max(
    0.1,
    environment.decimal(
        "SCHEMADESK_DATABASE_WAIT", 2, "seconds that a request waits for a database that is away before 503"
    ),
)
#: limits that detect a vanished server over a network within about ten seconds
REACHING = {
    "connect_timeout": math.ceil(DATABASE_WAIT),
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
}


def _database(url: str) -> dict[str, Any]:
    """Return Django's database entry for a libpq URL, including Unix sockets."""
    try:
        parts = conninfo_to_dict(url)
    except ProgrammingError:  # whose message has the password
        raise ImproperlyConfigured("DATABASE_URL and DATABASE_OWNER_URL begin with postgresql://.") from None
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


OWNER_COMMANDS = ("migrate", "flush", "sqlmigrate", "makemigrations", "backup", "restore")
_as_owner = sys.argv[1:2] and sys.argv[1] in OWNER_COMMANDS
USE_POOL = not _as_owner and "pytest" not in sys.modules
POOL = {
    "min_size": 1,
    "max_size": 17,  # one for each thread of a web process that may use it (dashboard/asgi.py)
    "connection_class": circuit_breaker.WatchedConnection,
    "timeout": DATABASE_WAIT,
    "reconnect_timeout": circuit_breaker.BETWEEN,
    "reconnect_failed": circuit_breaker.try_again,
}
_database_url = environment.text(
    "DATABASE_URL", "postgresql:///schemadesk", "the PostgreSQL database, as the role that the application runs as"
)
_owner_url = environment.text(
    "DATABASE_OWNER_URL", "", "the same database as its owner, for `migrate`", shown="DATABASE_URL"
)
DATABASES = {"default": _database(_owner_url if _as_owner and _owner_url else _database_url)}
DATABASE_DIRECT_URL = environment.text(
    "DATABASE_DIRECT_URL",
    "",
    "PostgreSQL's own address, if DATABASE_URL is that of a pooler such as PgBouncer: notifications come over it",
    shown="DATABASE_URL",
)
# The role that may only read the audit table; its privileges are granted after every migration.
DATABASE_APPLICATION_ROLE = environment.text(
    "DATABASE_APPLICATION_ROLE", "schemadesk_app", "the role that the application runs as, which can't change the audit"
)

_redis_url = environment.text(
    "REDIS_URL", "", "Valkey or Redis: `redis://…` or `unix:///path?db=0`", shown="`redis://127.0.0.1:6379/0`"
)
REDIS_URL = _redis_url or "redis://127.0.0.1:6379/0"
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": REDIS_URL,
        "OPTIONS": {
            "pool_class": "dashboard.celery.CachePool",
            "socket_connect_timeout": 1,
            "socket_timeout": 1,
        },
    }
}

# Responses before Django (docs/decisions/0012-answers-before-django.md). All programs of a host share the file.
HOT_PATH = environment.switch(
    "SCHEMADESK_HOT_PATH",
    "whether repeated requests are answered before Django while nothing has changed",
    default=UNDER_UP and "pytest" not in sys.modules,
    shown="`1` under `up`, `0` elsewhere",
)
HOT_PATH_FILE = Path(
    environment.text(
        "SCHEMADESK_HOT_PATH_FILE",
        str(DATA_DIR / "run" / "generation"),
        "the file that the programs of one host share for these answers",
        shown="`run/generation` below SCHEMADESK_DATA",
    )
)
HOT_PATH_MIB = environment.whole("SCHEMADESK_HOT_PATH_MIB", 64, "MiB of memory for these answers in each web process")
# A Valkey on a Unix socket can't be shared, so that there is only one host.
HOT_PATH_HOSTS = environment.switch(
    "SCHEMADESK_HOT_PATH_HOSTS",
    "whether other hosts write to the database too, and agree with this one over REDIS_URL",
    default=_redis_url.startswith("redis"),
    shown="`1` if REDIS_URL has a host",
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
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker survives any outage of Valkey
# A hanging Valkey blocks nobody for long; rows have the work even if the message is lost.
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "socket_timeout": 5, "max_retries": 0}
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SYNC_EVERY = 50  # tasks, about one per second; `up` uses the saved schedule to see that beat works
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
    "dashboard.request_ids.RequestIdMiddleware",
    "dashboard.client_address.ClientAddressMiddleware",
    "registry.api.request_reading.RawPathMiddleware",
    "dashboard.middleware.ApiMiddleware",  # API requests skip everything below
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dashboard.middleware.PackedPagesMiddleware",
    "dashboard.middleware.PrivatePagesMiddleware",
    "dashboard.middleware.HostCheckMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "dashboard.people.sessions.AuthenticationMiddleware",
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
SILENCED_SYSTEM_CHECKS = [
    "templates.W003",  # two libraries are called i18n on purpose (dashboard/templatetags/i18n.py)
    "security.W005",  # HSTS for other hosts of the domain is for their operators to decide,
    "security.W021",  # and so is a browser's preload list
    "security.W008",  # the proxy that ends TLS redirects to it; clients inside may use plain HTTP
]

AUTH_USER_MODEL = "access.User"
AUTHENTICATION_BACKENDS = [
    "dashboard.people.sign_in.ExactNameBackend",
    "allauth.account.auth_backends.AuthenticationBackend",  # only for existing sessions; signs in nobody
]
ACCOUNT_ADAPTER = "dashboard.people.sign_in.ClosedAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# Limits of failed sign-ins: dashboard/people/sign_in.py. Successful ones don't count, so that nobody can use up
# the limit of others who share an address.
ACCOUNT_RATE_LIMITS = {"login_failed": "", "login": ""}
# The proxies trusted to report the client of a request (dashboard/client_address.py).
TRUSTED_PROXIES = TrustedProxies.parse(
    environment.text(
        "SCHEMADESK_TRUSTED_PROXIES",
        "",
        "comma-separated addresses and networks of the proxies in front, or how many there are, whose X-Forwarded-For and"
        " X-Forwarded-Proto are believed",
    )
)
SOCIALACCOUNT_ADAPTER = "dashboard.people.oidc.IssuerAccounts"
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
# Sign-in through an OpenID Connect issuer (docs/how-to/people.md).
OIDC_ISSUER = environment.text("OIDC_ISSUER", "", "the address of an OpenID Connect issuer that people sign in through")
OIDC_CLIENT_ID = environment.text("OIDC_CLIENT_ID", "", "the client that the issuer knows this installation by")
OIDC_SECRET = environment.text("OIDC_SECRET", "", "the name of the client's secret in SCHEMADESK_SECRETS_DIR")
OIDC_NAME = environment.text("OIDC_NAME", "single sign-on", "what the button calls the issuer")
OIDC_SCOPES = environment.words("OIDC_SCOPES", "openid profile email", "the scopes that are asked for", separator=" ")
OIDC_ACR = environment.words(
    "OIDC_ACR",
    "",
    "the `acr` values of which the issuer must report one, such as that of a second factor",
    separator=" ",
)
OIDC_GROUPS_CLAIM = environment.text("OIDC_GROUPS_CLAIM", "groups", "the claim with a person's groups")
OIDC_GROUPS = tuple(
    (claimed.strip(), group.strip())
    for claimed, _, group in (
        pair.partition("=")
        for pair in environment.words(
            "OIDC_GROUPS", "", "`claimed=group,…`: which values of OIDC_GROUPS_CLAIM mean which of our groups"
        )
    )
    if claimed.strip() and group.strip()
)
OIDC_REQUIRED = environment.switch("OIDC_REQUIRED", "whether nobody may sign in with a password") and bool(OIDC_ISSUER)
if OIDC_ISSUER and not OIDC_CLIENT_ID:
    raise ImproperlyConfigured("set OIDC_CLIENT_ID too: the name that OIDC_ISSUER knows this installation by")
LOGIN_URL = "/ui/accounts/login/"
LOGIN_REDIRECT_URL = "/ui/"
ACCOUNT_LOGOUT_REDIRECT_URL = "/ui/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.ScryptPasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "dashboard.people.passwords.ContextWordsValidator"},
    {"NAME": "dashboard.people.passwords.BreachedPasswordsValidator"},
]
BREACHED_PASSWORDS = environment.text(
    "SCHEMADESK_BREACHED_PASSWORDS",
    "",
    "a file of passwords that nobody may choose: a SHA-1 in each line, in order, such as the published Pwned Passwords",
)

STATIC_URL = "/ui/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = environment.text("SCHEMADESK_STATIC_ROOT", "", "the folder that `collectstatic` fills") or None
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
SESSION_ENGINE = "dashboard.people.sessions"
SESSION_COOKIE_AGE = 3600 * environment.whole(
    "SCHEMADESK_SESSION_HOURS", 336 if UNDER_UP else 24, "hours after which people sign in again; 336 under `up`"
)
SESSION_IDLE_SECONDS = 60 * environment.whole(
    "SCHEMADESK_SESSION_IDLE_MINUTES",
    20_160 if UNDER_UP else 480,
    "minutes without a request after which people sign in again; 20160 under `up`",
)
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = not UNDER_UP and "pytest" not in sys.modules
# A browser takes a cookie with this prefix only over HTTPS from this host, for all paths.
_cookie_prefix = "__Host-" if SESSION_COOKIE_SECURE else ""
SESSION_COOKIE_NAME = f"{_cookie_prefix}schemadesk_session"
CSRF_COOKIE_NAME = f"{_cookie_prefix}csrftoken"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_HSTS_SECONDS = environment.whole(
    "SCHEMADESK_HSTS_SECONDS",
    0 if UNDER_UP else 86_400,
    "seconds that a browser which came by HTTPS insists on it for this host; 0 under `up`",
)
SECURE_HSTS_INCLUDE_SUBDOMAINS = environment.switch(
    "SCHEMADESK_HSTS_SUBDOMAINS", "whether such a browser insists on HTTPS for all hosts below this one too"
)
SECURE_REFERRER_POLICY = "same-origin"
DATA_UPLOAD_MAX_MEMORY_SIZE = 8 * 1024 * 1024
FILE_UPLOAD_HANDLERS = ["dashboard.middleware.SmallFileHandler"]  # uploads are never written to disk

LANGUAGE_CODE = "en"  # the language of the texts in code and templates, and of the APIs
LOCALE_PATHS = [BASE_DIR / "locale"]


def _languages() -> list[tuple[str, str]]:
    """Return English, and every language with a compiled catalogue (docs/how-to/translate.md)."""
    codes = [path.parent.parent.name.lower().replace("_", "-") for path in LOCALE_PATHS[0].glob("*/LC_MESSAGES/*.mo")]
    return [(code, LANG_INFO.get(code, {}).get("name", code)) for code in ("en", *sorted(codes))]


LANGUAGES = _languages()
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["registry.api.authentication.TokenAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],  # the services decide, for every channel
    "DEFAULT_SCHEMA_CLASS": "registry.api.product.description.ProductSchema",
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
    "COMPONENT_SPLIT_REQUEST": True,  # a request's and a response's body can have the same name
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    "ENUM_NAME_OVERRIDES": {
        "AnswerEnum": ["yes", "no", "unknown", "differs"],
        "RetirementAnswerEnum": ["no", "unknown", "not_before", "yes"],
        "WebhookKindEnum": "registry.notifications.models.KINDS",
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "registry.api.product.description.close_bodies",
    ],
}

LOG_LEVEL = environment.text(
    "LOG_LEVEL",
    "INFO",
    "the least severe lines that are logged",
    choices=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
)
LOG_FORMAT = environment.text(
    "LOG_FORMAT", "line", "how lines are logged: for people, or as JSON for programs", choices=("line", "json")
)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "dashboard.request_ids.LineFormatter",
            "fmt": "{asctime} {levelname} {name} {message}{during}",
            "style": "{",
        },
        "json": {"()": "dashboard.request_ids.JsonFormatter"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "filters": {"sparing": {"()": circuit_breaker.LogThrottle}},
    "loggers": {
        **{name: {"level": "WARNING"} for name in ("httpx", "httpx2", "httpcore2", "py4j")},
        "psycopg.pool": {"level": "WARNING", "filters": ["sparing"]},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
}

# The product's own settings
DEFAULT_PROJECT = environment.text("SCHEMADESK_PROJECT", "local", "the project of Google's API")
DEFAULT_LOCATION = environment.text("SCHEMADESK_LOCATION", "local", "the location of Google's API")
DEFAULT_REGISTRY = environment.text("SCHEMADESK_REGISTRY", "dev", "the registry of addresses that name none")
_anonymous_role = environment.text(
    "ANONYMOUS_ROLE", "steward", "the role of a program without a token; honoured only under `up`"
)
ANONYMOUS_ROLE = _anonymous_role if UNDER_UP else ""
INCOMPATIBLE_ERROR_CODE = environment.whole(
    "INCOMPATIBLE_ERROR_CODE", 409, "the error code of an incompatible schema in Confluent's API"
)
SPRING_PATH = environment.text(
    "SPRING_PATH", "spring/", "the root path of the Spring dialect, never the root of the site"
)
SPRING_ALLOW_DELETION = environment.switch(
    "SPRING_ALLOW_DELETION", "whether the Spring dialect may delete, for good; its own server's default is off too"
)
# Formats beside Avro, Protobuf and JSON Schema (docs/how-to/add-a-format.md).
SCHEMA_FORMATS = environment.words("SCHEMA_FORMATS", "", "the dotted paths of further schema formats")
# Child processes that read and compare costly schemas: their number, a request's time limit, their memory.
SCHEMA_CHILDREN = environment.whole("SCHEMA_CHILDREN", 2, "how many child processes read and compare costly schemas")
SCHEMA_SECONDS = environment.decimal(
    "SCHEMA_SECONDS", 2, "seconds of processor time that a request may use of such processes"
)
SCHEMA_MEMORY_MIB = environment.whole("SCHEMA_MEMORY_MIB", 512, "MiB of memory that each of them has")
SCHEMA_MAX_BYTES = environment.whole("SCHEMA_MAX_BYTES", 1_000_000, "the most bytes of a schema")
# Tags of personal data, ignoring case: the values of such fields are masked (docs/how-to/describe.md).
_personal_tags = environment.words(
    "PERSONAL_TAGS", "PII,SENSITIVE,GDPR,PERSONAL", "the tags of personal data, whose values are masked"
)
PERSONAL_TAGS = tuple(" ".join(_personal_tags).split())
MODE_MUTABILITY = environment.switch("MODE_MUTABILITY", "whether modes can be changed through an API", default=True)
COMMIT_ID = environment.text("COMMIT_ID", "", "the commit that Confluent's API reports")
KAFKA_BOOTSTRAP = environment.text("KAFKA_BOOTSTRAP", "", "the broker of the demo and of `up`")
SPARK_REMOTE = environment.text(
    "SPARK_REMOTE", "", "the Spark Connect server that scans run on: `sc://host:port/;token=…`"
)
CHECKPOINT_ROOTS = [
    Path(root)
    for root in environment.words(
        "SCHEMADESK_CHECKPOINT_ROOTS",
        str(DATA_DIR / "checkpoints"),
        "the folders below which checkpoints may be read",
        separator=":",
        shown="`checkpoints` below SCHEMADESK_DATA",
    )
]
_checkpoint_protocols = environment.words(
    "SCHEMADESK_CHECKPOINT_PROTOCOLS", "file", "the file systems that checkpoints may be on: `file`, `s3`"
)
CHECKPOINT_PROTOCOLS = tuple(protocol.lower() for protocol in _checkpoint_protocols)
CHECKPOINT_ADDRESSES = environment.words(
    "SCHEMADESK_CHECKPOINT_ADDRESSES", "", "the addresses (s3://bucket/folder) below which checkpoints may be read"
)
CHECKPOINT_SPARK_ROOTS = environment.words(
    "SCHEMADESK_CHECKPOINT_SPARK_ROOTS",
    "",
    "the folders and addresses that the Spark server itself can open",
    shown="SCHEMADESK_CHECKPOINT_ROOTS",
)
# Egress policy of our own HTTP clients, and the folder of their secrets (docs/decisions/0008-outgoing-addresses.md).
EGRESS_ALLOW = environment.words(
    "SCHEMADESK_EGRESS_ALLOW",
    "",
    "the hosts, addresses and networks (each may have :port) that outgoing calls may go to although they are on this"
    " machine or in another guarded range",
)
EGRESS_REFUSE_PRIVATE = not environment.switch(
    "SCHEMADESK_EGRESS_PRIVATE", "whether outgoing calls may go to private networks that aren't listed", default=True
)
_secrets_dir = environment.text(
    "SCHEMADESK_SECRETS_DIR",
    "",
    "the folder of secrets for outgoing calls; SCHEMADESK_SECRET_NAME is one without a file",
)
SECRETS_DIR = Path(_secrets_dir) if _secrets_dir else None
SOURCE_KINDS = environment.words(
    "SCHEMADESK_SOURCE_KINDS",
    "",
    "classes of [further kinds of source](../how-to/add-a-source.md), by their dotted paths",
)
SCAN_DEADLINE_SECONDS = environment.whole("SCAN_DEADLINE_SECONDS", 600, "seconds after which a scan stops")
# The site's public URL, for links in mails and chat messages; without it they have no links.
SITE_URL = environment.text("SCHEMADESK_URL", "", "where people reach the site, for links in mails and chats").rstrip(
    "/"
)
# Mail (docs/how-to/notifications.md): without a host no mail is sent, and the pages say so.
EMAIL_HOST = environment.text("SCHEMADESK_MAIL_HOST", "", "the mail server; without one no mail is sent")
EMAIL_PORT = environment.whole("SCHEMADESK_MAIL_PORT", 587, "the mail server's port")
EMAIL_HOST_USER = environment.text("SCHEMADESK_MAIL_USER", "", "the user at the mail server")
EMAIL_HOST_PASSWORD = environment.secret("SCHEMADESK_MAIL_PASSWORD", "the password at the mail server")
_mail_tls = environment.text(
    "SCHEMADESK_MAIL_TLS", "starttls", "how the connection is encrypted", choices=("starttls", "tls", "none")
)
EMAIL_USE_TLS, EMAIL_USE_SSL = _mail_tls == "starttls", _mail_tls == "tls"
EMAIL_TIMEOUT = 15
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'dummy'}.EmailBackend"
DEFAULT_FROM_EMAIL = environment.text("SCHEMADESK_MAIL_FROM", "schemadesk@localhost", "the sender of mails")
# How long a copy of permanently deleted versions is kept; 0: not at all (docs/how-to/retire.md).
DELETED_COPY_DAYS = environment.whole("DELETED_COPY_DAYS", 30, "days that a copy of what is deleted for good is kept")
WEBHOOK_DISABLE_DAYS = environment.whole("WEBHOOK_DISABLE_DAYS", 5, "days of failure after which a webhook is disabled")
NOTIFICATION_DAYS = environment.whole("NOTIFICATION_DAYS", 90, "days that notices and delivery logs are kept")
SCAN_MAX_MESSAGES = environment.whole("SCAN_MAX_MESSAGES", 5_000_000, "the most messages that a scan reads")
