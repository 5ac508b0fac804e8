"""The tables of `store.sqlite`, as SQL."""

from __future__ import annotations

__all__ = ["REJECTED_TABLE", "STATISTICS_TABLES", "TABLES"]

_FIRST_TABLES = """
-- what does not change: the learner's settings as JSON
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- `taught` counts every sample ever learned, `stored` those still in memory, `held` those of them that no sleep sees
CREATE TABLE classes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    label TEXT NOT NULL UNIQUE,
    taught INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX classes_by_stored ON classes (stored DESC, id);

-- sum of the z taught since the last sleep, float64
CREATE TABLE recent (
    class_id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    total BLOB NOT NULL
);

-- slot: 0 .. stored - 1 inside the class, without gaps, so that a random one is found without a scan
-- held: 1 if it is held out and measured, 2 beside such a sample: no sleep sees either
-- counted: it is in the statistics of the head
CREATE TABLE samples (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    class_id INTEGER NOT NULL,
    slot INTEGER NOT NULL,
    rehearsed INTEGER NOT NULL,
    held INTEGER NOT NULL DEFAULT 0,
    counted INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX samples_by_class ON samples (class_id, slot);
CREATE TABLE codes (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, codes BLOB NOT NULL);

-- keys of what was taught under a key, kept after eviction so that it is not taught again
CREATE TABLE keys (key INTEGER PRIMARY KEY, sample_id INTEGER NOT NULL);

-- hashes and report are JSON; without hashes the files are gone; since: the newest sample that is in its head
CREATE TABLE generations (
    number INTEGER PRIMARY KEY,
    made TEXT NOT NULL,
    hashes TEXT NOT NULL,
    since INTEGER NOT NULL,
    report TEXT
);
CREATE TABLE in_use (id INTEGER PRIMARY KEY CHECK (id = 0), generation INTEGER NOT NULL);

-- what was changed after it was taught, as JSON
CREATE TABLE audit (id INTEGER PRIMARY KEY AUTOINCREMENT, made TEXT NOT NULL, what TEXT NOT NULL);

-- how well the codec suits what is taught: a running mean of its relative error, and of how many samples
CREATE TABLE drift (id INTEGER PRIMARY KEY CHECK (id = 0), count INTEGER NOT NULL, error REAL NOT NULL);

-- small pictures of the newest samples of each class
CREATE TABLE thumbnails (id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, picture BLOB NOT NULL);
CREATE INDEX thumbnails_by_class ON thumbnails (class_id, id);
"""

STATISTICS_TABLES = """
-- statistics of the head: sums of u and of u u^T (upper triangle, of all classes) over the samples counted until a
-- moment, in float64, where u is the power-normalised z, and z, in float32, of the samples counted since
CREATE TABLE gram (
    id INTEGER PRIMARY KEY CHECK (id = 0), number INTEGER NOT NULL, checksum INTEGER NOT NULL, total BLOB NOT NULL
);
CREATE TABLE class_sums (
    class_id INTEGER PRIMARY KEY, count INTEGER NOT NULL, checksum INTEGER NOT NULL, total BLOB NOT NULL
);
CREATE TABLE counted_since (
    sample_id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, checksum INTEGER NOT NULL, feature BLOB NOT NULL
);
"""

REJECTED_TABLE = """
-- codes of images for which a class was rejected, with ids that are given by the counter of the samples
CREATE TABLE rejected (
    id INTEGER PRIMARY KEY, class_id INTEGER NOT NULL, checksum INTEGER NOT NULL, codes BLOB NOT NULL
);
"""

TABLES = _FIRST_TABLES + STATISTICS_TABLES + REJECTED_TABLE
"""The tables of a new store, in the order in which they came to be."""
