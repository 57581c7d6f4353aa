"""Kokoro: its files from a local server, and a small network of the same inputs and outputs."""

import functools
import http.server
import threading

import numpy as np
import pytest

from tapword.errors import TapwordError
from tapword.voices import kokoro_files
from tapword.voices.base import Unspeakable
from tapword.voices.kokoro import RATE, SIGNS, Kokoro
from tapword.voices.kokoro_files import N_STYLES, Files
from tests import fake_kokoro
from tests.fake_kokoro import NAMES, style


@pytest.fixture(scope="module")
def offered(tmp_path_factory):
    """A folder with files as they are offered, and their descriptions."""
    pytest.importorskip("onnx")
    folder = tmp_path_factory.mktemp("offered")
    return folder, *fake_kokoro.offer(folder)


@pytest.fixture
def server(offered):
    """Serve the folder; give the descriptions with their addresses, and the paths asked for."""
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(offered[0]))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        base = f"http://127.0.0.1:{serving.server_address[1]}"
        yield *(one._replace(url=f"{base}/{one.name}") for one in offered[1:]), asked
        serving.shutdown()
        thread.join()


@pytest.fixture
def files(offered, tmp_path, monkeypatch):
    """Kokoro's folder with the small files in it."""
    _, model, styles = offered
    monkeypatch.setattr(kokoro_files, "MODEL", model)
    found = Files(tmp_path / "kokoro")
    found.get(lambda _: None, offered[0], model, styles)
    return found


def test_get_fetches_checks_and_unpacks_once(server, tmp_path):
    model, styles, asked = server
    files, said = Files(tmp_path / "kokoro"), []
    assert "tapword voices get" in files.why_not()
    files.get(said.append, None, model, styles)
    assert files.why_not() is None and files.speakers == sorted(NAMES) and len(NAMES) == N_STYLES
    assert len(asked) == len(said) == 2 and "MB" in said[0]
    assert not (tmp_path / "escape.bin").exists()
    assert {path.name for path in files.folder.iterdir()} == {model.name, "styles"}
    files.get(said.append, None, model, styles)
    assert len(asked) == 2, "what is there is not fetched again"


def test_a_file_that_is_not_the_pinned_one_is_not_kept(server, tmp_path):
    model, styles, _ = server
    other = model._replace(sha256="0" * 64)
    files = Files(tmp_path / "kokoro")
    with pytest.raises(TapwordError, match=r"is not the file that was pinned \(SHA-256 0000"):
        files.get(lambda _: None, None, other, styles)
    assert not list(files.folder.iterdir())


def test_without_a_network_the_message_says_what_to_do(server, tmp_path):
    model, styles, _ = server
    gone = model._replace(url=model.url + ".gone")
    files = Files(tmp_path / "kokoro")
    with pytest.raises(TapwordError, match=r"404.*download http.*tapword voices get --from FOLDER"):
        files.get(lambda _: None, None, gone, styles)
    with pytest.raises(TapwordError, match="could not get"):
        files.get(lambda _: None, tmp_path, model, styles)
    assert not list(files.folder.iterdir())


def test_the_default_folder_is_the_users_data_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert Files().folder == tmp_path / "tapword" / "voices" / "kokoro"


def test_the_pinned_addresses_are_public_and_encrypted():
    for one in (kokoro_files.MODEL, kokoro_files.STYLES):
        assert one.url.startswith("https://") and one.url.endswith(one.name)
        assert len(one.sha256) == 64 and one.n_bytes > 1e7


def test_a_damaged_file_is_named(files):
    path = files.styles / f"{NAMES[0]}.bin"
    path.write_bytes(b"x" * 8)
    with pytest.raises(TapwordError, match=r"damaged.*tapword voices get"):
        files.style(NAMES[0])
    (files.folder / kokoro_files.MODEL.name).write_bytes(b"other")
    with pytest.raises(TapwordError, match="not the file that was pinned"):
        files.model()


def test_the_network_gets_signs_style_and_speed(files):
    voice = Kokoro(folder=str(files.folder), threads=2)
    phonemes = "həlˈO"  # noqa: RUF001
    said = list(voice.speak("hello", n=7, phonemes=phonemes))
    assert len(said) == 7 and len({one.speaker for one in said}) == 7
    # By hand: 2,400 samples for each sign and for the silence around them, at 24 kHz.
    numbers = [0, *(SIGNS[sign] for sign in phonemes), 0]
    for one in said:
        parts = [part.partition("*") for part in one.speaker.split("+")]
        level = sum(
            float(weight or 1) * style(NAMES.index(name))[len(phonemes) - 1, 0]
            for name, _, weight in parts
        )
        assert len(one.audio) == len(numbers) * 2400 * 16_000 // RATE
        assert np.abs(one.audio).max() == pytest.approx(level, rel=0.1)


def test_the_same_seed_gives_the_same_speakers(files):
    voice = Kokoro(folder=str(files.folder), threads=1)
    first, again, other = (
        [one.speaker for one in voice.speak("hi", n=5, seed=seed, phonemes="haI")]
        for seed in (0, 0, 1)
    )
    assert first == again != other


@pytest.mark.parametrize("phonemes", ["§§", "a" * 300])
def test_sounds_that_cannot_be_said_are_refused(files, phonemes):
    voice = Kokoro(folder=str(files.folder))
    with pytest.raises(Unspeakable, match="1 to 200 sounds that Kokoro knows"):
        next(voice.speak("hello", phonemes=phonemes))


def test_a_caller_may_stop_early(files):
    voice = Kokoro(folder=str(files.folder), threads=2)
    clips = voice.speak("hello", n=50, phonemes="haI")
    assert next(clips).audio.size
    clips.close()
