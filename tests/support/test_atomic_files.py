"""Files of any kind: written whole or not at all."""

import os
import stat
import sys

import pytest

from tapword.errors import InputError
from tapword.support.atomic_files import atomic_write, check_writable, clean_temp, why_not_file

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="permissions and pipes of POSIX")


def test_a_file_is_written_and_replaced(tmp_path):
    path = tmp_path / "a.bin"
    atomic_write(path, b"one")
    atomic_write(path, b"two")
    assert path.read_bytes() == b"two" and os.listdir(tmp_path) == ["a.bin"]


@POSIX
def test_permissions_are_kept_and_those_of_a_new_file_are_the_umasks(tmp_path):
    before = os.umask(0o027)
    try:
        atomic_write(tmp_path / "new", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    os.chmod(tmp_path / "new", 0o604)
    atomic_write(tmp_path / "new", b"again")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


@POSIX
def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    atomic_write(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch, step):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    atomic_write(tmp_path / "a", b"old")
    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space"):
        atomic_write(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old" and os.listdir(tmp_path) == ["a"]


@POSIX
def test_what_is_no_plain_file_is_written_to(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    atomic_write(tmp_path / "pipe", b"hello")
    assert os.read(reader, 10) == b"hello"
    os.close(reader)


def test_sweeping_takes_the_files_own_litter_alone(tmp_path):
    for name in (".a.0123abcd.new", ".b.0123abcd.new", "a.new", "a"):
        (tmp_path / name).touch()
    clean_temp(tmp_path / "a")
    assert sorted(os.listdir(tmp_path)) == [".b.0123abcd.new", "a", "a.new"]


def test_paths_that_cannot_be_written_are_refused_beforehand(tmp_path):
    check_writable(tmp_path / "new")
    with pytest.raises(InputError, match="it is a folder"):
        check_writable(tmp_path)
    with pytest.raises(InputError, match="its folder does not exist"):
        check_writable(tmp_path / "no" / "file")
    assert (
        why_not_file(tmp_path) == "is a folder"
        and why_not_file(tmp_path / "no") == "does not exist"
    )
