"""Everything that lasts: samples, classes, sums, and which weights are in use."""

from siesta.store.folder import DURABILITIES, check_free
from siesta.store.generations import Edit, Generation
from siesta.store.labels import clean_label
from siesta.store.schema import database_errors
from siesta.store.sizes import format_bytes, parse_bytes
from siesta.store.store import (
    OVERHEAD_BYTES,
    ClassRecord,
    NewSample,
    Outdated,
    Recent,
    Snapshot,
    Store,
)

__all__ = [
    "DURABILITIES",
    "OVERHEAD_BYTES",
    "ClassRecord",
    "Edit",
    "Generation",
    "NewSample",
    "Outdated",
    "Recent",
    "Snapshot",
    "Store",
    "check_free",
    "clean_label",
    "database_errors",
    "format_bytes",
    "parse_bytes",
]
