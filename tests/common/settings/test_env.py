"""The environment: production is recognized."""

import pytest

from common.settings.env import is_production


@pytest.mark.parametrize(
    "variables",
    [
        {"PRODUCTION": "true"},
        {"PRODUCTION": "1"},
        {"NODE_ENV": "production"},
        {"DJANGO_ENV": "Production"},
        {"DYNO": "web.1"},
        {"KUBERNETES_SERVICE_HOST": "10.0.0.1"},
        {"VERCEL": "1"},
        {"AWS_EXECUTION_ENV": "AWS_ECS_FARGATE"},
    ],
)
def test_production_is_recognized(variables: dict[str, str]) -> None:
    assert is_production(variables)


@pytest.mark.parametrize("variables", [{}, {"PRODUCTION": "false"}, {"NODE_ENV": "development"}])
def test_a_laptop_is_not_production(variables: dict[str, str]) -> None:
    assert not is_production(variables)
