"""Paths of signing up by a mailed link."""

from accounts.signup_links.views import SignupLinkViewSet
from platform_site.lib.viewsets import Router

router = Router()
router.register("v1/auth/signup", SignupLinkViewSet)

urlpatterns = router.urls
