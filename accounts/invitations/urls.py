"""Paths of invitations."""

from django.urls import path

from accounts.invitations import views

urlpatterns = [
    path("v1/invitations", views.InvitationsView.as_view()),
    path("v1/invitations/preview", views.InvitationPreviewView.as_view()),
    path("v1/invitations/accept", views.InvitationAcceptView.as_view()),
    path("v1/invitations/<str:invitation_id>", views.InvitationView.as_view()),
]
