"""Atomic replacement, locks, disk errors and the cache folder."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from siesta import files
from siesta.errors import BadInput, Busy, DiskRefused

WRITE_AND_DIE = """
import os, sys
from pathlib import Path
from siesta import files
files.os.fsync = lambda _: os.kill(os.getpid(), 9)
files.replace_file(Path(sys.argv[1]), "new")
"""


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_replace_file_writes_text_and_bytes(tmp_path: Path) -> None:
    files.replace_file(tmp_path / "x", "é")
    assert (tmp_path / "x").read_bytes() == "é".encode()
    files.replace_file(tmp_path / "x", b"\xff")
    assert (tmp_path / "x").read_bytes() == b"\xff"
    assert names(tmp_path) == ["x"]


def test_replace_file_applies_mode_and_umask(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        files.replace_file(tmp_path / "public", "")
        files.replace_file(tmp_path / "secret", "", mode=0o600)
    finally:
        os.umask(before)
    assert (tmp_path / "public").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_replace_file_takes_the_longest_names(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127):
        files.replace_file(tmp_path / name, "content")
        assert (tmp_path / name).read_text() == "content"


def test_a_failed_write_leaves_the_old_content_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    files.replace_file(tmp_path / "x", "old")
    monkeypatch.setattr("siesta.files.os.fsync", full)
    with pytest.raises(DiskRefused, match="x is full: the last change was not made"):
        files.replace_file(tmp_path / "x", "new")
    assert (tmp_path / "x").read_text() == "old"
    assert names(tmp_path) == ["x"]


def test_a_killed_write_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    files.replace_file(tmp_path / "x", "old")
    (tmp_path / ".x.partial").write_text("of version 0.1")
    (tmp_path / ".xy.1.partial").write_text("of another file")
    died = subprocess.run([sys.executable, "-c", WRITE_AND_DIE, tmp_path / "x"], check=False)
    assert died.returncode == -9
    assert (tmp_path / "x").read_text() == "old"
    assert len(names(tmp_path)) == 3  # the one of version 0.1 is removed already
    files.replace_file(tmp_path / "x", "new")
    assert names(tmp_path) == [".xy.1.partial", "x"]


def test_concurrent_writers_do_not_disturb_each_other(tmp_path: Path) -> None:
    failures: list[BaseException] = []

    def write(content: str) -> None:
        try:
            for _ in range(100):
                files.replace_file(tmp_path / "x", content, sync=False)
        except BaseException as error:
            failures.append(error)

    contents = [str(writer) * 1000 for writer in range(4)]
    threads = [Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        assert not (tmp_path / "x").exists() or (tmp_path / "x").read_text() in contents
    assert failures == []
    assert names(tmp_path) == ["x"]


def test_replace_folder_replaces_what_was_there(tmp_path: Path) -> None:
    for name in ("weights", ".weights.partial", ".weights.previous"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "old").touch()
    with files.replace_folder(tmp_path / "weights") as partial:
        assert names(tmp_path / "weights") == ["old"]
        (partial / "new").touch()
    assert names(tmp_path) == ["weights"]
    assert names(tmp_path / "weights") == ["new"]


def test_replace_folder_keeps_the_old_one_when_the_block_fails(tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    with pytest.raises(ZeroDivisionError), files.replace_folder(tmp_path / "weights") as partial:
        (partial / "new").touch()
        raise ZeroDivisionError
    assert names(tmp_path) == ["weights"]
    assert names(tmp_path / "weights") == []


@pytest.mark.parametrize(
    ("number", "kind", "message"),
    [
        (errno.ENOSPC, DiskRefused, "full"),
        (errno.EDQUOT, DiskRefused, "full"),
        (errno.EROFS, DiskRefused, "cannot be written"),
        (errno.EACCES, DiskRefused, "cannot be written"),
        (errno.EIO, DiskRefused, "check the disk"),
        (errno.EEXIST, BadInput, "exists already"),
        (errno.ENOENT, BadInput, "does not exist"),
        (errno.ELOOP, BadInput, "is a symbolic link"),
    ],
)
def test_disk_errors_name_the_path_and_the_remedy(number: int, kind: type[BadInput], message: str) -> None:
    with pytest.raises(BadInput, match=message) as caught, files.disk_errors(Path("/some/where")):
        raise OSError(number, "words")
    assert type(caught.value) is kind
    assert "/some/where" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    first = files.Lock(tmp_path / "lock", lambda pid: f"taken by process {pid}")
    with pytest.raises(Busy, match=f"taken by process {os.getpid()}"):
        files.Lock(tmp_path / "lock", lambda pid: f"taken by process {pid}")
    first.release()
    files.Lock(tmp_path / "lock", str).release()


def test_a_patient_lock_waits_until_it_is_released(tmp_path: Path) -> None:
    first = files.Lock(tmp_path / "lock", str)
    waiting = Thread(target=lambda: files.Lock(tmp_path / "lock", str, timeout=60.0).release())
    waiting.start()
    first.release()
    waiting.join(60.0)
    assert not waiting.is_alive()


def test_a_lock_file_that_its_owner_removed_is_made_again(tmp_path: Path) -> None:
    first = files.Lock(tmp_path / "lock", str)
    (tmp_path / "lock").unlink()
    second = files.Lock(tmp_path / "lock", str)
    first.release()
    assert files.is_locked(tmp_path / "lock")
    second.release()
    assert not files.is_locked(tmp_path / "lock")


def test_folder_bytes_counts_files_at_every_depth(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_bytes(b"123")
    files.write_file(tmp_path / "y", b"4567")
    assert files.folder_bytes(tmp_path) == 7


def test_sha256_is_that_of_the_bytes(tmp_path: Path) -> None:
    files.write_file(tmp_path / "x", b"content")
    assert files.sha256(tmp_path / "x") == hashlib.sha256(b"content").hexdigest()


def test_the_cache_folder_follows_xdg_cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert files.cache_folder("graphs") == tmp_path / "siesta" / "graphs"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert files.cache_folder("graphs") == tmp_path / "home" / ".cache" / "siesta" / "graphs"


def test_what_is_written_never_goes_through_a_link(tmp_path: Path) -> None:
    mine, link = tmp_path / "mine", tmp_path / "folder" / "link"
    mine.write_text("important")
    link.parent.mkdir()
    files.refuse_links(link.parent)
    link.symlink_to(mine)
    with pytest.raises(BadInput, match="link is a symbolic link, which is not followed"):
        files.refuse_links(tmp_path)
    for write in (lambda: files.write_file(link, b"x"), lambda: files.Lock(link, str)):
        with pytest.raises(BadInput, match="link is a symbolic link, which is not followed"), files.disk_errors(link):
            write()
    files.replace_file(link, "new")  # replaces the link itself
    assert mine.read_text() == "important" and link.read_text() == "new"


def test_a_disk_is_full_when_it_has_no_room_for_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not files.is_full(tmp_path) and not files.is_full(tmp_path / "nowhere")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=0, f_frsize=4096))
    assert files.is_full(tmp_path) and files.is_full(tmp_path / "not" / "yet")
