"""Paths of external sign-in."""

from common.api.viewsets import Router
from oauth.domains.views import DomainViewSet
from oauth.views import IdentityViewSet, OAuthViewSet, ProviderUseViewSet

router = Router()
router.register("v1/auth/oauth", OAuthViewSet)
router.register("v1/auth/identities", IdentityViewSet)
router.register("v1/domains", DomainViewSet)
router.register("v1/sign-in-providers", ProviderUseViewSet)

urlpatterns = router.urls
