import contextlib
import hashlib
import http.server
import io
import re
import shutil
import socket
import tarfile
import threading
import time
from pathlib import Path

import filelock
import numpy as np
import pytest

from tapword.backbones import checkpoints
from tapword.errors import InputError, TapwordError
from tapword.research.datasets import fetch
from tapword.research.datasets.speech_commands import SpeechCommands

NAME = "speech_commands_v0.01.tar.gz"
FILES = {
    "./LICENSE": b"CC BY",
    "./validation_list.txt": b"go/a_nohash_0.wav\n",
    "./testing_list.txt": b"go/b_nohash_0.wav\n",
    "./go/a_nohash_0.wav": b"one",
    "./go/b_nohash_0.wav": b"two",
    "./go/c_nohash_0.wav": np.random.default_rng(0).bytes(600_000),
}


def archive(files=FILES, change=None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if change:
                change(member)
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


class Site:
    """One file on a server on this machine, with the faults asked for."""

    def __init__(self, content: bytes):
        self.content = content
        self.tag: str | None = '"1"'
        self.ranges = True
        self.lengths = True
        # How many bytes each coming answer may send before the connection is cut.
        self.cuts: list[int] = []
        self.statuses: list[int] = []
        # Where an answer leads on to, instead of the file.
        self.elsewhere: str | None = None
        self.asked: list[dict[str, str]] = []
        self.url = ""


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    site = Site(archive())

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            site.asked.append(dict(self.headers))
            if site.statuses:
                self.send_error(site.statuses.pop(0))
                return
            if site.elsewhere:
                self.send_response(302)
                self.send_header("Location", site.elsewhere)
                self.end_headers()
                return
            body, size, begin = site.content, len(site.content), 0
            asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
            condition = self.headers.get("If-Range")
            if asked and site.ranges and condition in (None, site.tag):
                begin = int(asked[1])
                if begin >= size:
                    self.send_response(416)
                    self.send_header("Content-Range", f"bytes */{size}")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                self.send_response(206)
                self.send_header("Content-Range", f"bytes {begin}-{size - 1}/{size}")
            else:
                self.send_response(200)
            if site.tag:
                self.send_header("ETag", site.tag)
            if site.lengths:
                self.send_header("Content-Length", str(size - begin))
            self.end_headers()
            limit = site.cuts.pop(0) if site.cuts else size
            self.wfile.write(body[begin : begin + limit])

        def log_message(self, *arguments):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}/{NAME}"
        yield site
        server.shutdown()
        thread.join()


def get(site: Site, to: Path, **arguments) -> Path:
    sha256 = arguments.pop("sha256", None) or hashlib.sha256(site.content).hexdigest()
    arguments = {"urls": [site.url], "backoff_s": 0.0} | arguments
    return fetch.fetch_speech_commands("v0.01", to, sha256=sha256, **arguments)


def interrupt(site: Site, to: Path) -> None:
    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        get(site, to, progress=stop)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_the_whole_way(site, tmp_path):
    calls = []
    to = get(site, tmp_path / "new" / "speech", progress=lambda *call: calls.append(call))
    assert to == tmp_path / "new" / "speech"
    assert names(to.parent) == ["speech"]
    assert {path for path in names(to) if not path.startswith(".")} == {
        "LICENSE",
        "go",
        "testing_list.txt",
        "validation_list.txt",
    }
    assert (to / "go" / "c_nohash_0.wav").read_bytes() == FILES["./go/c_nohash_0.wav"]
    assert SpeechCommands(to, version="v0.01", strict=True).words == ["go"]
    size = len(site.content)
    assert calls[-1] == (size, size) and calls == sorted(calls)
    assert "Range" not in site.asked[0]

    get(site, to)
    assert len(site.asked) == 1, "what is there already is not fetched again"
    with pytest.raises(InputError, match="has another version"):
        get(site, to, sha256="0" * 64)


def test_what_was_unpacked_by_hand_is_left_alone(site, tmp_path):
    for name in ("validation_list.txt", "testing_list.txt"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match="of unknown version"):
        get(site, tmp_path)
    assert not site.asked and len(list(tmp_path.glob("*.txt"))) == 2


@pytest.mark.parametrize("tag", ['"1"', None, 'W/"weak"'])
def test_a_cut_connection_is_resumed(site, tmp_path, tag):
    site.tag = tag
    site.cuts = [200_000, 100_000]
    get(site, tmp_path / "speech")
    assert [asked.get("Range") for asked in site.asked] == [
        None,
        "bytes=200000-",
        "bytes=300000-",
    ]
    assert site.asked[1].get("If-Range") == (tag if tag == '"1"' else None)


def test_a_later_call_goes_on_where_an_earlier_one_stopped(site, tmp_path):
    interrupt(site, tmp_path / "speech")
    part = tmp_path / f"{NAME}.part"
    size = part.stat().st_size
    assert 0 < size < len(site.content) and not (tmp_path / "speech").exists()
    get(site, tmp_path / "speech")
    assert site.asked[1]["Range"] == f"bytes={size}-"
    assert names(tmp_path) == ["speech"]


def test_a_server_without_ranges_sends_all_again(site, tmp_path):
    site.ranges = False
    site.cuts = [200_000]
    get(site, tmp_path / "speech")
    assert site.asked[1]["Range"] == "bytes=200000-"
    assert names(tmp_path) == ["speech"]


@pytest.mark.parametrize("tag", ['"1"', None])
def test_a_file_that_has_changed_is_begun_anew(site, tmp_path, tag):
    site.tag, site.cuts = tag, [200_000]
    with pytest.raises(TapwordError):
        get(site, tmp_path / "speech", retries=0)
    site.content = archive(FILES | {"./go/d_nohash_0.wav": b"new" * 1000})
    site.tag = '"2"' if tag else None
    assert (get(site, tmp_path / "speech") / "go" / "d_nohash_0.wav").exists()


def test_a_part_that_is_whole_or_too_long(site, tmp_path):
    for content, begun_anew in ((site.content, False), (site.content + b"more", True)):
        interrupt(site, tmp_path / "speech")
        (tmp_path / f"{NAME}.part").write_bytes(content)
        site.asked.clear()
        get(site, tmp_path / "speech")
        assert ["Range" in asked for asked in site.asked] == [True, False][: 1 + begun_anew]
        assert names(tmp_path) == ["speech"]
        shutil.rmtree(tmp_path / "speech")


def test_a_part_of_unknown_origin_is_not_trusted(site, tmp_path):
    (tmp_path / f"{NAME}.part").write_bytes(b"something else")
    (tmp_path / f"{NAME}.part.json").write_text("[")
    get(site, tmp_path / "speech")
    assert "Range" not in site.asked[0]


def test_without_a_length_the_hash_decides(site, tmp_path):
    site.lengths = False
    calls = []
    get(site, tmp_path / "speech", progress=lambda *call: calls.append(call))
    assert calls[-1] == (len(site.content), None)


@pytest.mark.parametrize("lengths", [True, False])
def test_a_file_without_end_is_given_up(site, tmp_path, lengths, monkeypatch):
    monkeypatch.setattr(fetch, "MAX_BYTES", len(site.content) - 1)
    site.lengths = lengths
    wanted = "bytes are offered; the file has at most" if lengths else "more bytes came than"
    with pytest.raises(TapwordError, match=wanted):
        get(site, tmp_path / "speech")
    assert len(site.asked) == 1 and names(tmp_path) == []


@pytest.mark.parametrize("scheme", ["http", "ftp", "file"])
def test_no_redirection_leads_away_from_https(site, tmp_path, scheme):
    (tmp_path / NAME).write_bytes(site.content)
    site.elsewhere = f"{scheme}://127.0.0.1{tmp_path / NAME}"
    with pytest.raises(TapwordError, match=r"not an https address|is not allowed"):
        get(site, tmp_path / "deep" / "speech")
    assert len(site.asked) == 1


def test_a_redirection_to_https_is_followed(site, tmp_path):
    """Nobody speaks TLS at that port: the handshake fails, which is tried again."""
    port = site.url.split(":")[2].split("/")[0]
    site.elsewhere = f"https://127.0.0.1:{port}/{NAME}"
    with pytest.raises(TapwordError, match="SSL"):
        get(site, tmp_path / "speech", retries=0)


def test_the_official_addresses_are_https():
    assert fetch.URL.startswith("https://")


def test_weights_are_fetched_whole_within_bounds_or_not_at_all(site, tmp_path, monkeypatch):
    path = tmp_path / "hub" / "weights.pt"
    for lengths in (True, False):
        site.lengths = lengths
        checkpoints.download(site.url, path)
        assert path.read_bytes() == site.content
        path.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(checkpoints, "MAX_BYTES", len(site.content) - 1)
            with pytest.raises(OSError, match="bytes"):
                checkpoints.download(site.url, path)
    site.lengths, site.cuts = True, [1000]
    with pytest.raises(OSError, match="cut"):
        checkpoints.download(site.url, path)
    site.elsewhere = site.url
    with pytest.raises(OSError, match="not an https address"):
        checkpoints.download(site.url, path)
    with pytest.raises(InputError, match="must begin with http"):
        checkpoints.download("ftp://127.0.0.1/weights.pt", path)
    assert list(path.parent.iterdir()) == []


def test_a_busy_server_is_asked_again_with_growing_pauses(site, tmp_path, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    site.statuses = [503, 429, 500]
    get(site, tmp_path / "speech", backoff_s=1.0)
    assert pauses == [1, 2, 4]
    shutil.rmtree(tmp_path / "speech")
    site.statuses = [503] * 4
    with pytest.raises(TapwordError, match="HTTP Error 503"):
        get(site, tmp_path / "speech")


def test_a_refusal_is_final_and_the_next_address_is_tried(site, tmp_path):
    site.statuses = [404]
    with pytest.raises(TapwordError, match="404"):
        get(site, tmp_path / "speech")
    assert len(site.asked) == 1
    site.statuses = [404]
    get(site, tmp_path / "speech", urls=[site.url + "?mirror", site.url])


def test_no_network(tmp_path):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:
        port = server.getsockname()[1]
    url = f"http://127.0.0.1:{port}/{NAME}"
    to = tmp_path / "speech"
    with pytest.raises(TapwordError) as caught:
        fetch.fetch_speech_commands("v0.01", to, urls=[url], backoff_s=0.0)
    assert f"could not download {url}" in str(caught.value)
    assert f"copy it to {to / NAME}" in str(caught.value)
    assert names(tmp_path) == []


@pytest.mark.parametrize("inside", [True, False])
def test_an_archive_downloaded_by_hand_is_used_and_kept(site, tmp_path, inside):
    to = tmp_path / "speech"
    place = (to if inside else tmp_path) / NAME
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(site.content)
    get(site, to)
    assert not site.asked and place.read_bytes() == site.content
    assert SpeechCommands(to).words == ["go"]
    shutil.rmtree(to)
    to.mkdir()
    place.write_bytes(b"cut")
    with pytest.raises(
        TapwordError, match=r"\(3 bytes\) is damaged or not the official.*delete it to have"
    ):
        get(site, to)
    assert place.exists() and not site.asked


def test_a_wrong_hash_deletes_the_download(site, tmp_path):
    found = hashlib.sha256(site.content).hexdigest()
    with pytest.raises(TapwordError, match=f"SHA-256 is {found}, not {'0' * 64}; it was deleted"):
        get(site, tmp_path / "speech", sha256="0" * 64)
    assert names(tmp_path) == []


def test_the_official_hashes_are_the_default(site, tmp_path):
    with pytest.raises(TapwordError, match=f"not {fetch.SHA256['v0.01']}"):
        fetch.fetch_speech_commands("v0.01", tmp_path / "speech", urls=[site.url])


@pytest.mark.parametrize("name", ["../evil", "/evil", "go/../../evil"])
def test_an_archive_that_reaches_out_is_refused(site, tmp_path, name):
    site.content = archive(FILES | {name: b"evil"})
    if name.startswith("/"):
        # A leading slash is taken off, as tar does.
        assert (get(site, tmp_path / "in" / "speech") / "evil").exists()
    else:
        with pytest.raises(TapwordError, match=r"cannot be unpacked: .*outside"):
            get(site, tmp_path / "in" / "speech")
        assert names(tmp_path / "in") == [NAME]
    assert not list(tmp_path.glob("evil")) and not list(tmp_path.glob("in/evil"))


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_an_archive_with_links_or_devices_is_refused(site, tmp_path, kind):
    def change(member):
        if member.name == "./LICENSE":
            member.type, member.linkname, member.size = kind, "go", 0

    site.content = archive(change=change)
    with pytest.raises(TapwordError, match="cannot be unpacked"):
        get(site, tmp_path / "speech")
    assert not (tmp_path / "speech").exists()


def test_an_archive_that_is_none(site, tmp_path):
    site.content = b"<html>please log in</html>"
    with pytest.raises(TapwordError, match="cannot be unpacked"):
        get(site, tmp_path / "a")
    site.content = archive({"go/a.wav": b""})
    (tmp_path / NAME).unlink()
    with pytest.raises(TapwordError, match=r"not Speech Commands: there is no validation_list"):
        get(site, tmp_path / "b")
    site.content = archive()[:-1000]
    (tmp_path / NAME).unlink()
    with pytest.raises(TapwordError, match="cannot be unpacked"):
        get(site, tmp_path / "c")
    assert not any((tmp_path / name).exists() for name in "abc")


def test_a_full_disk_is_told_before_the_download(site, tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)._replace(free=1_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(TapwordError, match=r"has 0.0 GB free; 0.0 GB are needed"):
        get(site, tmp_path / "speech")
    assert not (tmp_path / "speech").exists()


def test_folders_that_cannot_be_used(site, tmp_path):
    (tmp_path / "notes.txt").touch()
    with pytest.raises(InputError, match=r"neither empty nor Speech Commands \(it has 'notes.txt'"):
        get(site, tmp_path)
    with pytest.raises(InputError, match="is a file; give a folder"):
        get(site, tmp_path / "notes.txt")
    with pytest.raises(TapwordError, match="cannot make"):
        get(site, tmp_path / "notes.txt" / "speech")
    with pytest.raises(InputError, match="must begin with http"):
        get(site, tmp_path / "speech", urls=["file:///x"])
    (tmp_path / "empty").mkdir()
    assert (get(site, tmp_path / "empty") / "go").is_dir()


def test_one_fetch_at_a_time(site, tmp_path):
    with (
        filelock.FileLock(tmp_path / ".speech.lock"),
        pytest.raises(TapwordError, match="another program is downloading"),
    ):
        get(site, tmp_path / "speech")
