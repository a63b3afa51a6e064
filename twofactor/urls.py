"""Paths of the second factor."""

from common.api.viewsets import Router
from twofactor.challenges.views import ChallengeViewSet, ReauthenticationViewSet
from twofactor.factors.views import FactorViewSet
from twofactor.policy.views import PolicyViewSet
from twofactor.registry import FACTORS
from twofactor.trusted_devices.views import TrustedDeviceViewSet
from twofactor.webauthn.views import PasskeySignInViewSet, PasskeyViewSet

PREFIX = "v1/auth/2fa"

router = Router()
router.register(PREFIX, ChallengeViewSet)
router.register(PREFIX, FactorViewSet)
router.register(PREFIX, PolicyViewSet)
for factor in FACTORS:
    router.register(f"{PREFIX}/{factor.type.name.replace('_', '-')}", factor.viewset)
router.register(f"{PREFIX}/webauthn/credentials", PasskeyViewSet)
router.register(f"{PREFIX}/trusted-devices", TrustedDeviceViewSet)
router.register("v1/auth/passkey", PasskeySignInViewSet)
router.register("v1/auth", ReauthenticationViewSet)

urlpatterns = router.urls
