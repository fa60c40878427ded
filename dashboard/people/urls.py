"""The URLs of sign-in and sign-out with django-allauth; its other pages aren't reachable."""

from __future__ import annotations

from allauth.account import views
from django.urls import path

from dashboard.people import oidc
from dashboard.people import views as people

urlpatterns = [
    path("login/", people.login, name="account_login"),
    path("oidc/login/", oidc.login, name="oidc_login"),
    path("oidc/callback/", oidc.callback, name="oidc_callback"),
    path("logout/", views.logout, name="account_logout"),
    path("password/change/", views.password_change, name="account_change_password"),
    # allauth's templates and redirects need these names; the adapter disables sign-up, and no page links to the rest
    path("signup/", views.signup, name="account_signup"),
    path("inactive/", views.account_inactive, name="account_inactive"),
    path("reauthenticate/", views.reauthenticate, name="account_reauthenticate"),
    path("password/reset/", views.signup, name="account_reset_password"),
]
