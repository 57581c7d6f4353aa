"""Encoders that install by pip alone, and parts whose packages are not installed."""

import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest

from tapword import registry
from tapword.backbones import onnx_files, pip_encoders
from tapword.backbones.base import Unavailable
from tapword.errors import InputError, MissingExtra, ModelFileError, how_to_install
from tests.conftest import tone

# Frames of 0.1, 1 and 2.5 s.
KNOWN = {
    "wakehubert_tiny": (5, 50, 125),
    "moonshine_tiny": (2, 40, 102),
    "moonshine_base": (2, 40, 102),
}


def ready(name):
    """Build the backbone; skip where its package is not installed."""
    backbone = registry.build("backbones", name)
    try:
        _ = backbone.session
    except (MissingExtra, Unavailable) as error:
        pytest.skip(str(error))
    return backbone


@pytest.mark.parametrize("name", KNOWN)
def test_frames(name):
    backbone = ready(name)
    for seconds, count in zip((0.1, 1.0, 2.5), KNOWN[name], strict=True):
        given = backbone.frames(tone(300, seconds))[0]
        assert given.shape == (count, *backbone.dims) and given.dtype == np.float32
        assert np.isfinite(given).all()
    assert len(backbone.frames(tone(300)[: backbone.min_samples])[0]) == 1
    with pytest.raises(InputError, match=f"at least {backbone.min_samples} are needed"):
        backbone.frames(tone(300)[: backbone.min_samples - 1])


@pytest.mark.parametrize("name", KNOWN)
def test_louder_neighbours_change_nothing(name):
    """Networks of 8 bits round by the largest number they see."""
    backbone = ready(name)
    clips = [tone(200 + 50 * i, 0.3 + 0.1 * (i % 2)) * (i + 1) / 4 for i in range(5)]
    for blocks, clip in zip(backbone.frames_many(clips), clips, strict=True):
        np.testing.assert_allclose(blocks[0], backbone.frames(clip)[0], atol=1e-4)


@pytest.mark.parametrize("name", KNOWN)
def test_only_the_file_meant_is_taken(name, tmp_path):
    backbone = ready(name)
    source = onnx_files.package_file(
        name, backbone.package, backbone.version, backbone.file, backbone.extra
    )
    copy = tmp_path / source.name
    copy.write_bytes(source.read_bytes())
    elsewhere = type(backbone)(weights=str(copy))
    np.testing.assert_array_equal(elsewhere.frames(tone(300))[0], backbone.frames(tone(300))[0])
    other = tmp_path / "other.onnx"
    other.write_bytes(b"another network")
    with pytest.raises(ModelFileError, match=f"is not the encoder of {backbone.package}"):
        type(backbone)(weights=str(other)).frames(tone(300))
    with pytest.raises(InputError, match="no weight file at"):
        type(backbone)(weights=str(tmp_path / "gone")).frames(tone(300))


@pytest.mark.parametrize(("name", "width", "layers"), [("tiny", 288, 6), ("base", 416, 8)])
def test_moonshine_parameters_are_those_of_its_architecture(name, width, layers):
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    transformers = pytest.importorskip("transformers", reason="needs the extra hf")
    configuration = transformers.MoonshineConfig(
        hidden_size=width,
        intermediate_size=4 * width,
        encoder_num_hidden_layers=layers,
        decoder_num_hidden_layers=1,
    )
    with torch.device("meta"):
        encoder = transformers.MoonshineModel(configuration).get_encoder()
    backbone = registry.build("backbones", f"moonshine_{name}")
    assert backbone.params == sum(x.numel() for x in encoder.parameters())
    assert backbone.dims == (width,)


def test_the_package_s_own_words_on_wakehubert():
    backbone = ready("wakehubert_tiny")
    file = backbone.file.replace("wakehubert.onnx", "config.json")
    path = onnx_files.package_file("x", backbone.package, backbone.version, file, "wakehubert")
    text = path.read_text()
    assert f'"params": {backbone.params},' in text
    assert f'"feature_dim": {backbone.dims[0]},' in text


@pytest.mark.parametrize("name", KNOWN)
def test_missing_packages_are_named(name, monkeypatch):
    backbone = registry.build("backbones", name)

    def absent(package):
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "files", absent)
    with pytest.raises(MissingExtra) as caught:
        backbone.frames(tone(300))
    assert f"{backbone.package}=={backbone.version}" in str(caught.value)
    assert how_to_install(backbone.extra) in str(caught.value)
    monkeypatch.setattr(importlib.metadata, "files", lambda package: [])
    monkeypatch.setattr(importlib.metadata, "version", lambda package: "9.9")
    with pytest.raises(Unavailable, match=r"the installed 9\.9 does not contain them"):
        backbone.frames(tone(300))


@pytest.mark.parametrize(
    ("spec", "package", "extra"),
    [
        ("wav2vec2_base:weights=random", "torch", "torch"),
        ("emformer_base", "torch", "torch"),
        ("transformers:model=someone/model", "transformers", "hf"),
        ("transformers:model=someone/model", "torch", "hf"),
    ],
)
def test_missing_torch_packages_are_named(spec, package, extra, monkeypatch):
    if package == "transformers":
        pytest.importorskip("torch", reason="needs the extra torch")
    monkeypatch.setitem(sys.modules, package, None)
    backbone = registry.build("backbones", spec)
    for use in (lambda: backbone.frames(tone(300)), lambda: backbone.params):
        with pytest.raises(MissingExtra) as caught:
            use()
        assert f"'{package}'" in str(caught.value)
        assert how_to_install(extra) in str(caught.value)


def test_without_onnxruntime_the_extra_is_named(monkeypatch):
    backbone = pip_encoders.WakehubertTiny()
    try:
        assert backbone.session
    except MissingExtra as error:
        pytest.skip(str(error))
    pip_encoders._load.cache_clear()
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra, match=r"wakehubert_tiny needs .*'onnxruntime'.*wakehubert"):
        backbone.frames(tone(300))


def test_listing_the_room_imports_nothing_heavy():
    program = (
        "import sys; from tapword import registry\n"
        "for cls in registry.classes('backbones').values(): cls(); registry.summary(cls)\n"
        "heavy = {'torch', 'torchaudio', 'transformers', 'onnx', 'onnxruntime'}\n"
        "heavy &= set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_arguments_are_checked():
    with pytest.raises(InputError, match="moonshine_tiny: threads must be a whole number"):
        pip_encoders.MoonshineTiny(threads=0)
