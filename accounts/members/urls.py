"""Paths of members."""

from django.urls import path

from accounts.members import views

urlpatterns = [
    path("v1/members", views.MembersView.as_view()),
    path("v1/members/<str:user_id>", views.MemberView.as_view()),
]
