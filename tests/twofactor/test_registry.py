"""Every factor is in the registry, with the same files as the others."""

from pathlib import Path

import pytest

from environments.models import MFA_METHODS
from twofactor import registry
from twofactor.registry import FACTORS, RegisteredFactor

FOLDER = Path(registry.__file__).parent
EACH = pytest.mark.parametrize("factor", FACTORS, ids=lambda factor: factor.type.name)


def test_the_registry_has_the_methods_that_a_policy_can_allow_in_their_order() -> None:
    assert tuple(factor.type.name for factor in FACTORS) == MFA_METHODS


@EACH
def test_a_factor_has_a_folder_of_its_name_with_its_modules(factor: RegisteredFactor) -> None:
    package = f"twofactor.{factor.type.name}"
    names = {vars(factor.enrolment)["__name__"], vars(factor.proof)["__name__"]}
    assert names == {f"{package}.enrolment", f"{package}.proof"}
    files = {path.name for path in (FOLDER / factor.type.name).glob("*.py")}
    assert {"factor.py", "enrolment.py", "proof.py", "serializers.py", "views.py"} <= files


@EACH
def test_a_factor_is_found_by_both_of_its_names(factor: RegisteredFactor) -> None:
    assert registry.factor_of(factor.type.name) is factor
    assert registry.name_in_challenges(factor.type.challenge_name) == factor.type.name
    assert registry.challenge_names([factor.type.name]) == [factor.type.challenge_name]


def test_an_unknown_name_stays_as_it_is() -> None:
    assert registry.name_in_challenges("carrier pigeon") == "carrier pigeon"


def test_backup_codes_alone_are_not_a_second_factor() -> None:
    assert [f.type.name for f in FACTORS if not f.type.is_second_factor] == ["backup_codes"]
