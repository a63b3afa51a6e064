"""Regions: their coordinates and distances, and the region of a client, if it can be found."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import structlog

from edgecache.brain.conf.brain import Geography, Network
from edgecache.http.addresses import IpAddress, parse_address
from edgecache.http.scope import TrustedProxies
from edgecache.protocol.names import LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)

Coordinates = tuple[float, float]

EARTH_RADIUS_KM: Final = 6371.0
# The distance to a region without coordinates: half of the Earth's circumference.
UNKNOWN_KM: Final = EARTH_RADIUS_KM * math.pi
DISTANCES_KEPT: Final = 10_000

MAX_LOOKUPS_CACHED: Final = 16_384

# Latitude and longitude, in degrees, of the large providers' regions of that name.
COORDINATES: Final[dict[str, Coordinates]] = {
    "af-north": (30.0, 31.2),
    "af-south": (-33.9, 18.4),
    "af-west": (6.5, 3.4),
    "ap-east": (22.3, 114.2),
    "ap-northeast": (35.7, 139.7),
    "ap-northeast-2": (37.6, 127.0),
    "ap-northeast-3": (34.7, 135.5),
    "ap-south": (19.1, 72.9),
    "ap-south-2": (17.4, 78.5),
    "ap-southeast": (1.3, 103.8),
    "ap-southeast-2": (-33.9, 151.2),
    "ap-southeast-3": (-6.2, 106.8),
    "ap-southeast-4": (-37.8, 145.0),
    "au-east": (-33.9, 151.2),
    "ca-central": (45.5, -73.6),
    "ca-west": (51.0, -114.1),
    "cn-east": (31.2, 121.5),
    "cn-north": (39.9, 116.4),
    "eu-central": (50.1, 8.7),
    "eu-central-2": (47.4, 8.5),
    "eu-east": (52.2, 21.0),
    "eu-north": (59.3, 18.1),
    "eu-south": (45.5, 9.2),
    "eu-south-2": (41.6, -0.9),
    "eu-west": (53.3, -6.3),
    "eu-west-2": (51.5, -0.1),
    "eu-west-3": (48.9, 2.4),
    "il-central": (32.1, 34.8),
    "me-central": (25.2, 55.3),
    "me-south": (26.1, 50.6),
    "sa-east": (-23.5, -46.6),
    "sa-west": (-33.4, -70.7),
    "us-central": (41.3, -95.9),
    "us-east": (39.0, -77.5),
    "us-east-2": (40.0, -83.0),
    "us-north": (44.9, -93.2),
    "us-south": (32.8, -96.8),
    "us-west": (37.4, -122.0),
    "us-west-2": (45.8, -119.7),
}
# For GeoIP databases that have only continents.
CONTINENTS: Final = {
    "AF": "af-south",
    "AN": "sa-west",
    "AS": "ap-southeast",
    "EU": "eu-central",
    "NA": "us-east",
    "OC": "ap-southeast-2",
    "SA": "sa-east",
}


def great_circle_km(one: Coordinates, other: Coordinates) -> float:
    """Return the distance along the surface. Source: the haversine formula."""
    latitude, longitude = math.radians(one[0]), math.radians(one[1])
    other_latitude, other_longitude = math.radians(other[0]), math.radians(other[1])
    half = (
        math.sin((other_latitude - latitude) / 2) ** 2
        + math.cos(latitude)
        * math.cos(other_latitude)
        * math.sin((other_longitude - longitude) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_KM * math.asin(math.sqrt(min(half, 1.0)))


class RegionMap:
    """The built-in regions and those of the settings."""

    def __init__(self, more: Mapping[str, Coordinates]) -> None:
        """more: name → coordinates; a name of the built-in table is overridden."""
        self._coordinates = {**COORDINATES, **more}
        self._distances: dict[tuple[str, str], float] = {}

    def coordinates(self, region: str) -> Coordinates | None:
        """Return a region's coordinates; ``us-east-1`` is looked up as ``us-east`` if unknown."""
        found = self._coordinates.get(region)
        name, _, number = region.rpartition("-")
        if found is None and number.isdigit():
            return self._coordinates.get(name)
        return found

    def distance_km(self, one: str, other: str) -> float:
        """Return the distance of two regions; the greatest possible for an unknown one."""
        if one == other:
            return 0.0
        known = self._distances.get((one, other))
        if known is None:
            here, there = self.coordinates(one), self.coordinates(other)
            known = great_circle_km(here, there) if here and there else UNKNOWN_KM
            if len(self._distances) >= DISTANCES_KEPT:
                # Bounded: clients may name any region.
                self._distances.clear()
            self._distances[one, other] = known
        return known

    def nearest_to(self, point: Coordinates) -> str:
        """Return the region nearest to a point."""
        return min(self._coordinates, key=lambda n: great_circle_km(point, self._coordinates[n]))


class Locator:
    """Looks at a trusted edge's header, the map of networks, then the GeoIP database."""

    def __init__(
        self, geography: Geography, region_map: RegionMap, proxies: TrustedProxies
    ) -> None:
        """Open the GeoIP database if one is configured."""
        self._geography = geography
        self._region_map = region_map
        self._proxies = proxies
        self._networks = _by_prefix(geography.networks)
        self._geoip = _open_geoip(geography)
        # By address, because the same clients send many requests.
        self._looked_up: Callable[[str], str] = lru_cache(MAX_LOOKUPS_CACHED)(self._look_up)

    def region_of(self, client: str, headers: Any, *, peer: str = "") -> str:
        """Return the region of a client, the brain's own if it cannot be found out.

        client: its address. headers: of the request, with ``get``. peer: the connection's address,
        if that is an edge; only an address of ZTRUSTED_PROXIES may declare a region.
        """
        declared = self._declared(headers, peer or client)
        return declared or self._looked_up(client)

    def _declared(self, headers: Any, peer: str) -> str:
        name = self._geography.header
        if not name:
            return ""
        region = str(headers.get(name) or "").strip().lower()
        is_believed = LABEL.fullmatch(region) and self._proxies.include(peer)
        return region if is_believed else ""

    def _look_up(self, client: str) -> str:
        address = parse_address(client)
        if address is None:
            return self._geography.region
        for prefix, regions in self._networks.get(address.version, ()):
            region = regions.get(int(address) >> (address.max_prefixlen - prefix))
            if region:
                return region
        return self._from_geoip(address) or self._geography.region

    def _from_geoip(self, address: IpAddress) -> str:
        row = self._geoip.get(str(address)) if self._geoip else None
        if not isinstance(row, dict):
            return ""
        location = row.get("location") or {}
        if "latitude" in location and "longitude" in location:
            point = (float(location["latitude"]), float(location["longitude"]))
            return self._region_map.nearest_to(point)
        return CONTINENTS.get((row.get("continent") or {}).get("code", ""), "")


def _by_prefix(
    networks: tuple[tuple[Network, str], ...],
) -> dict[int, list[tuple[int, dict[int, str]]]]:
    """Sort networks by version and prefix, the narrowest first: a look-up tries each length."""
    found: dict[int, dict[int, dict[int, str]]] = {}
    for network, region in networks:
        first = int(network.network_address) >> (network.max_prefixlen - network.prefixlen)
        found.setdefault(network.version, {}).setdefault(network.prefixlen, {})[first] = region
    return {version: sorted(rows.items(), reverse=True) for version, rows in found.items()}


def _open_geoip(geography: Geography) -> Any:
    if geography.geoip is None:
        return None
    # Read only where a file is configured: it costs memory that most brains need not spend.
    import maxminddb  # noqa: PLC0415 - see above

    reader = maxminddb.open_database(str(geography.geoip), maxminddb.MODE_MMAP)
    log.info("geoip_opened", database=reader.metadata().database_type)
    return reader
