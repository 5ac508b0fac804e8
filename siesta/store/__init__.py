"""Everything a learner keeps: samples, classes, sums, and generations of weights."""

from siesta.store.classes import ClassRecord, RecentSum
from siesta.store.eviction import OVERHEAD_BYTES
from siesta.store.folder import check_new_path, require_learner
from siesta.store.generations import Generation, HeadEdit
from siesta.store.labels import clean_label
from siesta.store.samples import NewSample
from siesta.store.schema import database_errors
from siesta.store.session import DURABILITIES
from siesta.store.sizes import format_bytes, parse_bytes
from siesta.store.snapshot import RowSnapshot, Snapshot
from siesta.store.statistics import StoredStatistics
from siesta.store.store import OutdatedFeatures, Store, StoredSample

__all__ = [
    "DURABILITIES",
    "OVERHEAD_BYTES",
    "ClassRecord",
    "Generation",
    "HeadEdit",
    "NewSample",
    "OutdatedFeatures",
    "RecentSum",
    "RowSnapshot",
    "Snapshot",
    "Store",
    "StoredSample",
    "StoredStatistics",
    "check_new_path",
    "clean_label",
    "database_errors",
    "format_bytes",
    "parse_bytes",
    "require_learner",
]
