"""Paths of members, invitations, and of an organization's export and deletion."""

from common.api.viewsets import Router
from organizations.organization_views import OrganizationDeletionViewSet, OrganizationExportViewSet
from organizations.views import InvitationViewSet, MemberViewSet

router = Router()
router.register("v1/members", MemberViewSet)
router.register("v1/invitations", InvitationViewSet)
router.register("v1/organization/exports", OrganizationExportViewSet)
router.register("v1/organization", OrganizationDeletionViewSet)

urlpatterns = router.urls
