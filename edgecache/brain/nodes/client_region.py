"""The region of a client, if it can be found."""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import structlog

from edgecache.brain.conf.brain import Geography, Network
from edgecache.brain.nodes.regions import CONTINENTS, RegionMap
from edgecache.http.addresses import IpAddress, is_within, parse_address
from edgecache.protocol.names import LABEL

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)

MAX_LOOKUPS_CACHED: Final = 16_384


class Locator:
    """Looks at a trusted edge's header, the map of networks, then the GeoIP database."""

    def __init__(self, geography: Geography, region_map: RegionMap) -> None:
        """Open the GeoIP database if one is configured."""
        self._geography = geography
        self._region_map = region_map
        self._networks = _by_prefix(geography.networks)
        self._geoip = _open_geoip(geography)
        # By address, because the same clients send many requests.
        self._looked_up: Callable[[str], str] = lru_cache(MAX_LOOKUPS_CACHED)(self._look_up)

    def region_of(self, client: str, headers: Any, *, peer: str = "") -> str:
        """Return the region of a client, the brain's own if it cannot be found out.

        client: its address. headers: of the request, with ``get``. peer: the connection's address,
        if that is an edge; only an address of ZCACHE_TRUSTED_EDGES may declare a region.
        """
        declared = self._declared(headers, peer or client)
        return declared or self._looked_up(client)

    def _declared(self, headers: Any, peer: str) -> str:
        name = self._geography.header
        if not name or not self._geography.trusted_edges:
            return ""
        region = str(headers.get(name) or "").strip().lower()
        is_believed = LABEL.fullmatch(region) and self._is_trusted(peer)
        return region if is_believed else ""

    def _is_trusted(self, peer: str) -> bool:
        address = parse_address(peer)
        return address is not None and is_within(address, self._geography.trusted_edges)

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
