"""Paths of members, invitations, and of an organization's export and deletion."""

from accounts.invitations.views import InvitationViewSet
from accounts.members.views import MemberViewSet
from accounts.organization.export_views import OrganizationExportViewSet
from accounts.organization.views import OrganizationDeletionViewSet
from common.api.viewsets import Router

router = Router()
router.register("v1/members", MemberViewSet)
router.register("v1/invitations", InvitationViewSet)
router.register("v1/organization/exports", OrganizationExportViewSet)
router.register("v1/organization", OrganizationDeletionViewSet)

urlpatterns = router.urls
