"""The least Django that renders the pages: for the gallery alone, without database, so that a page can be seen quickly."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

SECRET_KEY = "only for looking at sample pages"
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.site.urls"
PRODUCT_VERSION = "1.0.0"
LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"
SCHEMA_FORMATS: list[str] = []
SCHEMA_CHILDREN, SCHEMA_SECONDS, SCHEMA_MEMORY_MIB = 1, 1.0, 256  # limits of requests; no child starts
SOURCE_KINDS: list[str] = []
CHECKPOINT_PROTOCOLS = ("file", "s3")
CHECKPOINT_ROOTS = [Path("/var/lib/schemadesk")]
CHECKPOINT_ADDRESSES = ("s3://lake/checkpoints",)
SECRETS_DIR = Path("/run/secrets/schemadesk")
INSTALLED_APPS = [
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "template_partials",
    "registry.audit",
    "registry.access",
    "registry.subjects",
    "registry.promotions",
    "registry.drift",
    "registry.streams",
    "registry.notifications",
    "registry.search",
    "tests.site.gallery_app.GalleryConfig",
]
AUTH_USER_MODEL = "access.User"
MIDDLEWARE = [
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
STATIC_URL = "/static/"
STATICFILES_DIRS = [ROOT / "static"]
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'", "data:"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
        "object-src": ["'none'"],
    }
}
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]
