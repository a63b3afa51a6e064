"""The parts of the brain that the workers' API uses."""

from typing import Protocol
from uuid import UUID

from edgecache.brain.conf.brain import BrainSettings
from edgecache.brain.db.coherence import Coherence
from edgecache.brain.db.database import BrainDatabase
from edgecache.brain.metering.creditable_reads import CreditableReads
from edgecache.brain.metering.operator_networks import OperatorNetworks
from edgecache.brain.nodes.endpoints import EndpointProofs
from edgecache.brain.nodes.known_nodes import KnownNodes
from edgecache.brain.nodes.tickets import TicketSigner
from edgecache.brain.stores.readiness import Readiness
from edgecache.http.scope import TrustedProxies


class WorkersApiDependencies(Protocol):
    """What a handler of workers' messages may use."""

    settings: BrainSettings
    proxies: TrustedProxies
    brain_id: UUID
    database: BrainDatabase
    readiness: Readiness
    coherence: Coherence
    nodes: KnownNodes
    tickets: TicketSigner
    proofs: EndpointProofs
    networks: OperatorNetworks
    creditable_reads: CreditableReads
