"""Paths of the accounts."""

from accounts.api_keys.views import ApiKeyViewSet
from accounts.profile.views import ProfileViewSet
from accounts.signup_links.views import SignupLinkViewSet
from accounts.terminal.views import TerminalSignInViewSet
from accounts.views import CallerViewSet, RefreshTokenViewSet, SessionViewSet, SignInViewSet
from common.api.viewsets import Router

router = Router()
# Tried in this order: the most frequent paths first.
router.register("v1", CallerViewSet)
router.register("v1/auth", RefreshTokenViewSet)
router.register("v1/auth", SignInViewSet)
router.register("v1/auth", ProfileViewSet)
router.register("v1/auth/sessions", SessionViewSet)
router.register("v1/auth/signup", SignupLinkViewSet)
router.register("v1/auth/terminal", TerminalSignInViewSet)
router.register("v1/api-keys", ApiKeyViewSet)

urlpatterns = router.urls
