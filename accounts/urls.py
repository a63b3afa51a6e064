"""Paths of the accounts."""

from django.urls import include, path

from accounts import views

urlpatterns = [
    path("v1/auth/signup", views.SignupView.as_view()),
    path("v1/auth/login", views.LoginView.as_view()),
    path("v1/auth/refresh", views.RefreshView.as_view()),
    path("v1/auth/switch", views.SwitchView.as_view()),
    path("v1/auth/logout", views.LogoutView.as_view()),
    path("v1/whoami", views.WhoamiView.as_view()),
    path("v1/permissions/effective", views.EffectivePermissionsView.as_view()),
    path("", include("accounts.oauth.urls")),
    path("", include("accounts.members.urls")),
    path("", include("accounts.audit.urls")),
    path("", include("accounts.invitations.urls")),
    path("", include("accounts.profile.urls")),
    path("", include("accounts.signup_links.urls")),
]
