"""Paths of external sign-in."""

from accounts.oauth.domains.views import DomainViewSet
from accounts.oauth.provider_views import ProviderUseViewSet
from accounts.oauth.views import IdentityViewSet, OAuthViewSet
from common.api.viewsets import Router

router = Router()
router.register("v1/auth/oauth", OAuthViewSet)
router.register("v1/auth/identities", IdentityViewSet)
router.register("v1/domains", DomainViewSet)
router.register("v1/sign-in-providers", ProviderUseViewSet)

urlpatterns = router.urls
