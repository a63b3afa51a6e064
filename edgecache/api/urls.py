"""Paths of the cache."""

from common.api.viewsets import Router
from edgecache.api.bucket_views import AccessKeyViewSet, BucketViewSet, OriginViewSet
from edgecache.api.object_views import ObjectViewSet
from edgecache.api.views import CacheViewSet, NodeViewSet

router = Router()
router.register("v1/cache/nodes", NodeViewSet)
router.register("v1/cache/buckets", BucketViewSet)
router.register("v1/cache/buckets/<str:bucket_name>/objects", ObjectViewSet)
router.register("v1/cache/access-keys", AccessKeyViewSet)
router.register("v1/cache/origins", OriginViewSet)
router.register("v1/cache", CacheViewSet)

urlpatterns = router.urls
