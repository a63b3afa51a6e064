"""Paths of the accounts."""

from django.urls import include, path

from accounts.api_keys.views import ApiKeyViewSet
from accounts.audit.views import AuditEventViewSet
from accounts.invitations.views import InvitationViewSet
from accounts.members.views import MemberViewSet
from accounts.organization.export_views import OrganizationExportViewSet
from accounts.organization.views import OrganizationDeletionViewSet
from accounts.profile.views import ProfileViewSet
from accounts.sessions.views import RefreshTokenViewSet, SessionViewSet
from accounts.signin.views import SignInViewSet
from accounts.signup_links.views import SignupLinkViewSet
from accounts.terminal.views import TerminalSignInViewSet
from accounts.views import CallerViewSet
from accounts.webhooks.views import WebhookDeliveryViewSet, WebhookViewSet
from platform_site.lib.viewsets import Router

router = Router()
# Tried in this order: the most frequent paths first.
router.register("v1", CallerViewSet)
router.register("v1/auth", RefreshTokenViewSet)
router.register("v1/auth", SignInViewSet)
router.register("v1/auth", ProfileViewSet)
router.register("v1/auth/sessions", SessionViewSet)
router.register("v1/auth/signup", SignupLinkViewSet)
router.register("v1/auth/terminal", TerminalSignInViewSet)
router.register("v1/members", MemberViewSet)
router.register("v1/invitations", InvitationViewSet)
router.register("v1/api-keys", ApiKeyViewSet)
router.register("v1/webhooks", WebhookViewSet)
router.register("v1/webhooks/<str:webhook_id>/deliveries", WebhookDeliveryViewSet)
router.register("v1/audit", AuditEventViewSet)
router.register("v1/organization/exports", OrganizationExportViewSet)
router.register("v1/organization", OrganizationDeletionViewSet)

urlpatterns = [*router.urls, path("", include("accounts.oauth.urls"))]
