"""Every way by which a person proves a mailbox: a secret goes there, and comes back.

Each way gives the secret to a function, which returns the caller's session in the account that has
the address then; so a test can do something between the two.
"""

from collections.abc import Callable

from accounts.models import User
from environments import environments
from environments.models import Organization
from tests.accounts.profile.support import begin_change, mailed_code, user_of, verify
from tests.accounts.signup_links.test_signup_links import complete as complete_link
from tests.accounts.signup_links.test_signup_links import linked
from tests.cast import Answer, Caller, member, signed_in, with_proven_address
from tests.oauth.support import OAuthFlow
from tests.organizations.support import accept, invited
from tests.recovery.support import complete, proven

NEW_PASSWORD = "only the victim knows"

Return = Callable[[], Answer]


def by_link(email: str) -> Return:
    """Sign up by a mailed link."""
    token = linked(email)
    return lambda: complete_link(token, NEW_PASSWORD, organization="Real Acme")


def by_invitation(email: str) -> Return:
    """Accept an invitation to an organization of other people."""
    inviter = member(another_organization(), "inviter@example.org")
    token = invited(with_proven_address(inviter), email)
    return lambda: accept(token, NEW_PASSWORD)


def by_change(email: str) -> Return:
    """Change the address of an account to it."""
    ann = with_proven_address(member(another_organization(), "ann@example.org"))
    caller = signed_in(ann)
    assert begin_change(caller, email).status == 202
    code = mailed_code(email)
    return lambda: verify(caller, code)


def by_provider(email: str) -> Return:
    """Sign in with Google; the test's ``google`` has the address."""
    flow = OAuthFlow("google")
    code = flow.code()
    return lambda: flow.exchange(code)


def by_recovery(email: str) -> Return:
    """Recover the account with a mailed code."""
    verified = proven(user_of(email))
    can_choose = bool(verified.body["methods"]) and verified.body["next"] != "password"
    more = {"new_account": True} if can_choose else {}

    def come_back() -> Answer:
        completed = complete(verified, NEW_PASSWORD, **more)
        if completed.status != 204:
            return completed
        return Caller().post("/v1/auth/login", {"email": email, "password": NEW_PASSWORD})

    return come_back


DOORS = {
    "link": by_link,
    "invitation": by_invitation,
    "change": by_change,
    "provider": by_provider,
    "recovery": by_recovery,
}


def another_organization() -> Organization:
    """Return an organization that has nothing to do with the account that has the address."""
    return environments.create_organization("Another")


def inside(answer: Answer, email: str) -> Caller:
    """Return a session of the account that has the address now."""
    if "access_token" in answer.body:
        return Caller().holding(answer)
    return signed_in(user_of(email))


def released(user: User) -> bool:
    """True if an account has lost its address."""
    now = User.objects.get(pk=user.pk)
    return now.email == "" and now.address_released_at is not None
