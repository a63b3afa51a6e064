"""What the matrix of ways in asks of each: to be gone to its end, rightly and wrongly."""

from abc import ABC, abstractmethod
from importlib import import_module
from pkgutil import iter_modules
from typing import ClassVar

import tests.sign_in_methods
from accounts.models import User
from accounts.signin.signin import SignInMethod
from environments.models import Organization
from tests.cast import Answer

EMAIL = "wanda@example.com"


class Driver(ABC):
    """One way in.

    sign_in_method: what it calls itself in ``SignInAttempt``.
    method: the second factor that it proves itself, so that none is asked for; '' for a method that
    proves a first factor only.
    makes_account: who comes in had no account before, so could hold no second factor.
    makes_organization: nor could its organization have a policy.
    """

    sign_in_method: ClassVar[SignInMethod]
    method: ClassVar[str] = ""
    makes_account: ClassVar[bool] = False
    makes_organization: ClassVar[bool] = False

    @abstractmethod
    def prepare(self, home: Organization) -> User | None:
        """Make who comes in, as a member of ``home`` with EMAIL; None where the way does that."""

    @abstractmethod
    def come_in(self) -> Answer:
        """Go the way to its end, with right proofs; return the last answer, or the first refusal.

        Can be run twice, except for methods that create the account.
        """

    @abstractmethod
    def fail(self) -> Answer:
        """Go the way with a wrong proof of its own; return the refusal."""


def drivers() -> dict[str, Driver]:
    """Return the driver of each module in this folder."""
    modules = [
        import_module(f"tests.sign_in_methods.{found.name}")
        for found in iter_modules(tests.sign_in_methods.__path__)
        if found.name != "driver"
    ]
    return {module.__name__: module.DRIVER for module in modules}
