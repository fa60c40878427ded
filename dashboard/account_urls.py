"""Sign-in and sign-out by django-allauth; nothing else of it is reachable."""

from __future__ import annotations

from allauth.account import views
from django.urls import path

from dashboard.views import accounts, oidc

urlpatterns = [
    path("login/", accounts.login, name="account_login"),
    path("oidc/login/", oidc.login, name="oidc_login"),
    path("oidc/callback/", oidc.callback, name="oidc_callback"),
    path("logout/", views.logout, name="account_logout"),
    path("password/change/", views.password_change, name="account_change_password"),
    # allauth's templates and redirects ask for these names; sign-up is shut by the adapter, the rest isn't offered
    path("signup/", views.signup, name="account_signup"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/reset/", views.signup, name="account_reset_password"),
]
