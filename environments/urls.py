"""Paths of the environments."""

from django.urls import path

from environments.views import EnvironmentsView, EnvironmentView

urlpatterns = [
    path("v1/environments", EnvironmentsView.as_view()),
    path("v1/environments/<str:environment_id>", EnvironmentView.as_view()),
]
