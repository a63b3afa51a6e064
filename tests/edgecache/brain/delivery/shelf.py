"""A public bucket with an object that the brain serves from memory."""

import os
from dataclasses import dataclass, field
from typing import Any

from tests.edgecache.brain.s3.raw import Answer, Signer, send
from tests.edgecache.cluster import Cluster, Keys, until

BODY = os.urandom(5000)


@dataclass
class Shelf:
    """A public bucket of a tenant. headers: of each anonymous request."""

    cluster: Cluster
    keys: Keys
    row: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def signer(self) -> Signer:
        """Return the owner's signatures."""
        return Signer(self.keys, self.cluster.url)

    def path(self, key: str) -> str:
        """Return the path at which anonymous clients find an object."""
        return f"/{self.row['public_name']}/{key}"

    def put(self, key: str, body: bytes, **headers: str) -> None:
        """Write an object."""
        assert self.signer.send("PUT", f"/shelf/{key}", body, headers).status == 200

    def get(self, key: str = "k", **headers: str) -> Answer:
        """Read an object anonymously, with more headers."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return send(self.cluster.url, "GET", self.path(key), self.headers | more)

    def get_signed(self, key: str = "k", **headers: str) -> Answer:
        """Read an object as its owner, with more headers."""
        return self.signer.send("GET", f"/shelf/{key}", headers=headers)

    def warm(self, key: str = "k") -> None:
        """Read an object until it is in memory, and a worker has a copy."""
        until(lambda: self.get(key, x_zonal_redirect="1").status == 307)
        for _ in range(3):
            self.get(key)

    def change(self, **switches: bool) -> None:
        """Change the bucket."""
        self.cluster.call("PATCH", f"/v1/buckets/{self.row['id']}?{self.keys.scope}", switches)


def direct_shelf(cluster: Cluster, keys: Keys) -> Shelf:
    """Return a bucket with one cached object, which the brain serves from memory."""
    row = cluster.call("POST", f"/v1/buckets?{keys.scope}", {"name": "shelf", "is_public": True})
    made = Shelf(cluster, keys, row)
    made.put("k", BODY, **{"content-type": "text/x-k"})
    made.warm()
    return made
