"""Paths of the second factor."""

from common.api.viewsets import Router
from twofactor.backup_codes.views import BackupCodeViewSet
from twofactor.challenges.views import ChallengeViewSet, ReauthenticationViewSet
from twofactor.email.views import EmailViewSet
from twofactor.factors.views import FactorViewSet
from twofactor.policy.views import PolicyViewSet
from twofactor.sms.views import SmsViewSet
from twofactor.totp.views import TotpViewSet
from twofactor.trusted_devices.views import TrustedDeviceViewSet
from twofactor.webauthn.views import (
    PasskeyRegistrationViewSet,
    PasskeySignInViewSet,
    PasskeyViewSet,
)

PREFIX = "v1/auth/2fa"

router = Router()
router.register(PREFIX, ChallengeViewSet)
router.register(PREFIX, FactorViewSet)
router.register(PREFIX, PolicyViewSet)
router.register(f"{PREFIX}/totp", TotpViewSet)
router.register(f"{PREFIX}/sms", SmsViewSet)
router.register(f"{PREFIX}/email", EmailViewSet)
router.register(f"{PREFIX}/webauthn", PasskeyRegistrationViewSet)
router.register(f"{PREFIX}/webauthn/credentials", PasskeyViewSet)
router.register(f"{PREFIX}/backup-codes", BackupCodeViewSet)
router.register(f"{PREFIX}/trusted-devices", TrustedDeviceViewSet)
router.register("v1/auth/passkey", PasskeySignInViewSet)
router.register("v1/auth", ReauthenticationViewSet)

urlpatterns = router.urls
