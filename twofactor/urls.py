"""Paths of the second factor."""

from django.urls import path

from platform_site.lib.viewsets import Router
from twofactor import views
from twofactor.backup_codes.views import BackupCodeViewSet
from twofactor.email.views import EmailSetupView, EmailVerifyView
from twofactor.sms.views import SmsSetupView, SmsVerifyView
from twofactor.totp.views import TotpSetupView, TotpVerifyView
from twofactor.webauthn import views as webauthn

PREFIX = "v1/auth/2fa"

router = Router()
router.register(f"{PREFIX}/backup-codes", BackupCodeViewSet)

urlpatterns = [
    path(f"{PREFIX}/status", views.StatusView.as_view()),
    path(f"{PREFIX}/totp/setup", TotpSetupView.as_view()),
    path(f"{PREFIX}/totp/verify", TotpVerifyView.as_view()),
    path(f"{PREFIX}/sms/setup", SmsSetupView.as_view()),
    path(f"{PREFIX}/sms/verify", SmsVerifyView.as_view()),
    path(f"{PREFIX}/email/setup", EmailSetupView.as_view()),
    path(f"{PREFIX}/email/verify", EmailVerifyView.as_view()),
    path(f"{PREFIX}/webauthn/register", webauthn.RegisterView.as_view()),
    path(f"{PREFIX}/webauthn/register/finish", webauthn.RegisterFinishView.as_view()),
    path(f"{PREFIX}/webauthn/credentials", webauthn.PasskeysView.as_view()),
    path(
        f"{PREFIX}/webauthn/credentials/<str:credential_id>",
        webauthn.PasskeyView.as_view(),
    ),
    path("v1/auth/passkey/start", webauthn.SignInStartView.as_view()),
    path("v1/auth/passkey/finish", webauthn.SignInFinishView.as_view()),
    path(f"{PREFIX}/challenge", views.ChallengeView.as_view()),
    path(f"{PREFIX}/challenge/<str:challenge_id>/verify", views.ChallengeVerifyView.as_view()),
    path(f"{PREFIX}/method/<str:method>", views.MethodView.as_view()),
    path(f"{PREFIX}/default", views.DefaultMethodView.as_view()),
    *router.urls,
    path(f"{PREFIX}/trusted-devices", views.TrustedDevicesView.as_view()),
    path(f"{PREFIX}/trusted-devices/<str:device_id>", views.TrustedDeviceView.as_view()),
    path(f"{PREFIX}/policy", views.PolicyView.as_view()),
    path(f"{PREFIX}/compliance", views.ComplianceView.as_view()),
    path("v1/auth/reauthenticate", views.ReauthenticateView.as_view()),
]
