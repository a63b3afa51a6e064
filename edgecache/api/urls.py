"""Paths of the cache."""

from django.urls import path

from edgecache.api import holding_views, host_views, views

urlpatterns = [
    path("v1/cache/status", views.StatusView.as_view()),
    path("v1/cache/metrics", views.MetricsView.as_view()),
    path("v1/cache/metrics/history", views.HistoryView.as_view()),
    path("v1/cache/nodes", views.NodesView.as_view()),
    path("v1/cache/nodes/register", views.RegisterNodeView.as_view()),
    path("v1/cache/nodes/<str:node_id>", views.NodeView.as_view()),
    path("v1/cache/nodes/<str:node_id>/metrics", views.NodeMetricsView.as_view()),
    path("v1/cache/purge", views.PurgeView.as_view()),
    path("v1/cache/buckets", holding_views.BucketsView.as_view()),
    path("v1/cache/buckets/<str:bucket_name>", holding_views.BucketView.as_view()),
    path("v1/cache/buckets/<str:bucket_name>/hosts", host_views.HostsView.as_view()),
    path("v1/cache/buckets/<str:bucket_name>/hosts/<str:host>", host_views.HostView.as_view()),
    path("v1/cache/access-keys", holding_views.AccessKeysView.as_view()),
    path("v1/cache/access-keys/<str:access_key_id>", holding_views.AccessKeyView.as_view()),
    path("v1/cache/origins", holding_views.OriginsView.as_view()),
    path("v1/cache/origins/<str:origin_name>", holding_views.OriginView.as_view()),
]
