"""Accepting an invitation."""

from django.utils import timezone

from accounts.signin.signin import SignInMethod
from environments.models import Organization
from organizations import invitations
from organizations.invitations import Inviter, Offer
from tests.cast import Answer
from tests.organizations.support import accept, mailed_token
from tests.sign_in_methods.driver import EMAIL, Driver


class Invitation(Driver):
    sign_in_method = SignInMethod.INVITATION
    makes_account = True

    def prepare(self, home: Organization) -> None:
        offer = Offer(EMAIL, ["reader"])
        invitations.invite(home.pk, offer, inviter=Inviter(), now=timezone.now())

    def come_in(self) -> Answer:
        return accept(mailed_token(EMAIL))

    def fail(self) -> Answer:
        return accept("not my token")


DRIVER = Invitation()
