"""Paths of the audit trail."""

from django.urls import path

from accounts.audit import views

urlpatterns = [path("v1/audit", views.AuditView.as_view())]
