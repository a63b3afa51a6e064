"""Paths of external sign-in."""

from django.urls import path

from accounts.oauth import views
from accounts.oauth.domains.views import DomainsView, DomainVerifyView, DomainView

OAUTH = "v1/auth/oauth"

urlpatterns = [
    path(f"{OAUTH}/providers", views.ProvidersView.as_view()),
    path(f"{OAUTH}/token", views.TokenView.as_view()),
    path(f"{OAUTH}/<str:provider>/start", views.StartView.as_view()),
    path(f"{OAUTH}/<str:provider>/callback", views.CallbackView.as_view()),
    path(f"{OAUTH}/<str:provider>/link", views.LinkView.as_view()),
    path("v1/auth/identities", views.IdentitiesView.as_view()),
    path("v1/auth/identities/<str:identity_id>", views.IdentityView.as_view()),
    path("v1/domains", DomainsView.as_view()),
    path("v1/domains/<str:domain_id>", DomainView.as_view()),
    path("v1/domains/<str:domain_id>/verify", DomainVerifyView.as_view()),
]
