"""The messages' former place; import them from the module named for each instead."""

from edgecache.protocol.heartbeats import Heartbeat, HeartbeatAnswer, Problem, PublicKey
from edgecache.protocol.inventories import Held, Inventory, InventoryAnswer
from edgecache.protocol.jobs import Job, JobDone, JobKind, Jobs, JobSource
from edgecache.protocol.receipts import ReceiptLine, Receipts, ReceiptsAnswer, RefusedReceipt

__all__ = [
    "Held",
    "Heartbeat",
    "HeartbeatAnswer",
    "Inventory",
    "InventoryAnswer",
    "Job",
    "JobDone",
    "JobKind",
    "JobSource",
    "Jobs",
    "Problem",
    "PublicKey",
    "ReceiptLine",
    "Receipts",
    "ReceiptsAnswer",
    "RefusedReceipt",
]
