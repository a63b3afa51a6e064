"""Paths of the SQL gateway."""

from django.urls import path

from sqlgateway.views import SqlView

urlpatterns = [path("v1/sql", SqlView.as_view())]
