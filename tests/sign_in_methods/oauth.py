"""An identity provider that vouches for who comes: Google, on this machine."""

from dataclasses import replace

from django.conf import settings
from django.test import override_settings
from django.utils import timezone

from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from oauth.models import Identity
from oauth.providers.conf import ProviderSettings
from tests.cast import Answer, member
from tests.oauth.fake_providers.google import GooglePerson, GoogleServer
from tests.oauth.fake_providers.server import CLIENT_ID, CLIENT_SECRET
from tests.oauth.support import APP, OAuthFlow
from tests.sign_in_methods.driver import EMAIL, Driver

BASE = "https://zonal.example.com"


class External(Driver):
    sign_in_method = SignInMethod.EXTERNAL

    def prepare(self, home: Organization) -> User:
        user = member(home, EMAIL)
        Identity.objects.create(
            user=user,
            organization=home,
            provider="google",
            subject=GooglePerson().sub,
            created_at=timezone.now(),
        )
        return user

    def come_in(self) -> Answer:
        return self.visit()

    def fail(self) -> Answer:
        return self.visit(verifier="x" * 43)

    def visit(self, verifier: str = "") -> Answer:
        """Go to Google and back, and exchange the code; verifier: another than the flow's."""
        with GoogleServer() as google:
            google.redirect_uris.add(f"{BASE}/v1/auth/oauth/google/callback")
            provider = ProviderSettings(CLIENT_ID, CLIENT_SECRET, google.url)
            with override_settings(
                OAUTH=replace(
                    settings.OAUTH,
                    providers={"google": provider},
                    redirect_base_url=BASE,
                    redirects=(APP,),
                )
            ):
                flow = OAuthFlow("google")
                code = flow.code()
                return flow.exchange(code, code_verifier=verifier or flow.verifier)


DRIVER = External()
