"""Everything that lasts: samples, classes, sums, and which weights are in use."""

from siesta.store.labels import clean_label
from siesta.store.sizes import format_bytes, parse_bytes
from siesta.store.store import OVERHEAD_BYTES, ClassRecord, NewSample, Recent, Snapshot, Store

__all__ = [
    "OVERHEAD_BYTES",
    "ClassRecord",
    "NewSample",
    "Recent",
    "Snapshot",
    "Store",
    "clean_label",
    "format_bytes",
    "parse_bytes",
]
