"""What must hold for any sound that comes in, searched by hypothesis."""

import numpy as np
import pytest
import soundfile
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tapword.audio import files
from tapword.errors import InputError
from tests.conftest import tone
from tests.search import SEARCH


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("search")


@st.composite
def sounds(draw):
    """A way to write a file: format, subtype, rate, channels, frames."""
    kind = draw(st.sampled_from(sorted(set(soundfile.available_formats()) - {"RAW"})))
    subtype = draw(st.sampled_from(sorted(soundfile.available_subtypes(kind))))
    rate = draw(
        st.sampled_from([8_000, 11_025, 16_000, 22_050, 44_100, 48_000, 96_000])
        | st.integers(1, 2**31 - 1)
    )
    # Above that rate the process dies of libsndfile's Vorbis encoder, which tapword never calls.
    assume(subtype != "VORBIS" or rate <= 192_000)
    return kind, subtype, rate, draw(st.integers(1, 9)), draw(st.integers(0, 9_000))


@SEARCH
@given(sounds(), st.floats(0, 1.0), st.integers(0, 2**32 - 1))
def test_any_sound_file_reads_or_is_refused(folder, sound, peak, seed):
    kind, subtype, rate, channels, frames = sound
    path = folder / "clip"
    samples = np.random.default_rng(seed).uniform(-peak, peak, (frames, channels))
    try:
        soundfile.write(path, samples, rate, format=kind, subtype=subtype)
    except (soundfile.SoundFileError, ValueError, TypeError, AssertionError):
        assume(False)
    assert_sound(lambda: files.read(path))


@SEARCH
@given(st.sampled_from(["WAV", "FLAC", "OGG", "MP3"]), st.data())
def test_damaged_sound_files_read_or_are_refused(folder, kind, data):
    path = folder / "clip"
    soundfile.write(path, tone(300, 0.3), 16_000, format=kind)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        # Headers, which say how to read the rest, lie in front.
        last = data.draw(st.sampled_from([60, len(content) - 1]))
        content[data.draw(st.integers(0, last))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    assert_sound(lambda: files.read(path))


@SEARCH
@given(
    hnp.arrays(
        hnp.scalar_dtypes() | st.sampled_from([np.dtype(kind) for kind in ("f4", "f8", "i2")]),
        st.integers(0, 4_000) | hnp.array_shapes(min_dims=0, min_side=0, max_side=4),
    ),
    st.sampled_from([8_000, 16_000, 48_000])
    | st.integers()
    | st.floats()
    | st.fractions()
    | st.none()
    | st.text(max_size=3),
)
def test_any_array_is_read_or_refused(samples, rate):
    before = samples.tobytes()
    assert_sound(lambda: files.check(samples, rate))
    assert samples.tobytes() == before


def assert_sound(call):
    try:
        clip = call()
    except InputError:
        return
    assert clip.dtype == np.float32 and clip.ndim == 1 and len(clip)
    assert np.isfinite(clip).all()
    assert len(clip) <= files.MAX_S * files.SAMPLE_RATE + 1
