"""Encoders in Hugging Face's format: tiny ones of each make, written on the spot."""

import json
import types

import numpy as np
import pytest

from tapword import Spotter
from tapword.backbones.base import Unavailable
from tapword.backbones.torchaudio_bundles import Wav2vec2Base
from tapword.backbones.transformers import Transformers
from tapword.errors import InputError, ModelFileError
from tests.conftest import tone

torch = pytest.importorskip("torch", reason="needs the extra torch")
transformers = pytest.importorskip("transformers", reason="needs the extra hf")

SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "conv_dim": (16,) * 7,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
}
STABLE = {"do_stable_layer_norm": True, "feat_extract_norm": "layer", "conv_bias": True}
WHISPER = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "vocab_size": 100,
    "pad_token_id": 1,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 3,
}
# Make, its configuration, and the frames of 0.1, 1 and 2.5 s.
MAKES = {
    "wav2vec2": ("Wav2Vec2", SMALL, (4, 49, 124)),
    "wav2vec2_stable": ("Wav2Vec2", SMALL | STABLE, (4, 49, 124)),
    "hubert": ("Hubert", SMALL, (4, 49, 124)),
    "wavlm": ("WavLM", SMALL, (4, 49, 124)),
    "data2vec": ("Data2VecAudio", SMALL, (4, 49, 124)),
    "whisper": ("Whisper", WHISPER, (5, 50, 125)),
}


def write(folder, make, normalise=True, ending="Model"):
    """Make a tiny encoder with random weights and write it as people publish theirs."""
    name, arguments, _ = MAKES[make]
    torch.manual_seed(0)
    configuration = getattr(transformers, f"{name}Config")(**arguments)
    model = getattr(transformers, f"{name}{ending}")(configuration).eval()
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(folder)
    transformers.utils.logging.enable_progress_bar()
    if make == "whisper":
        transformers.WhisperFeatureExtractor().save_pretrained(folder)
    else:
        transformers.Wav2Vec2FeatureExtractor(do_normalize=normalise).save_pretrained(folder)
    return model


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads cost tiny networks more than they give, most of all on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch):
    """The device "auto" means the CPU here, so that figures hold on every machine."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("encoders")
    for make in MAKES:
        write(root / make, make)
    return root


@pytest.mark.parametrize("make", MAKES)
def test_each_make_gives_frames(folders, make, capfd):
    backbone = Transformers(model=str(folders / make))
    assert backbone.dims == (32,)
    for seconds, count in zip((0.1, 1.0, 2.5), MAKES[make][2], strict=True):
        given = backbone.frames(tone(300, seconds))[0]
        assert given.shape == (count, 32) and given.dtype == np.float32
        assert np.isfinite(given).all()
    encoder = backbone.network.model
    assert backbone.params == sum(x.numel() for x in encoder.parameters())
    assert not encoder.training and len(backbone.weights_sha256) == 64
    assert capfd.readouterr() == ("", ""), "nothing is printed"


@pytest.mark.parametrize("make", MAKES)
def test_neighbours_and_repetition_change_nothing(folders, make):
    clips = [tone(200 + 50 * i, 0.3 + 0.1 * (i % 2)) * (i + 1) / 8 for i in range(4)]
    backbone = Transformers(model=str(folders / make))
    many = backbone.frames_many(clips)
    for blocks, clip in zip(many, clips, strict=True):
        np.testing.assert_allclose(blocks[0], backbone.frames(clip)[0], atol=1e-4)
    again = Transformers(model=str(folders / make)).frames_many(clips)
    np.testing.assert_array_equal(many[0][0], again[0][0])


@pytest.mark.parametrize("make", MAKES)
def test_frames_are_the_library_s_own(folders, make):
    model = transformers.AutoModel.from_pretrained(folders / make).eval()
    model = model.get_encoder() if make == "whisper" else model
    extractor = transformers.AutoFeatureExtractor.from_pretrained(folders / make)
    feed = extractor(tone(300), sampling_rate=16_000, return_tensors="pt")
    with torch.inference_mode():
        output = model(**feed, output_hidden_states=True)
    length = MAKES[make][2][1]
    expected = output.last_hidden_state[0, :length].numpy()
    given = Transformers(model=str(folders / make)).frames(tone(300))[0]
    np.testing.assert_allclose(given, expected, atol=1e-5)
    for layer in (1, 2):
        given = Transformers(model=str(folders / make), layer=layer).frames(tone(300))[0]
        expected = output.hidden_states[layer][0, :length].numpy()
        np.testing.assert_allclose(given, expected, atol=1e-5)


@pytest.mark.parametrize("make", ["wav2vec2", "wav2vec2_stable"])
def test_torchaudio_and_transformers_agree(tmp_path, make):
    try:
        from torchaudio.models.wav2vec2 import utils
    except (ImportError, OSError) as error:
        pytest.skip(f"torchaudio cannot be imported: {error}")
    original = write(tmp_path / "folder", make, normalise=False)
    imported = utils.import_huggingface_model(original)
    torch.save(imported.state_dict(), tmp_path / "torchaudio.pt")
    source = original.config

    class Same(Wav2vec2Base):
        public_name = "same"
        layers, width, inner_width = 3, 32, 32
        bundle = types.SimpleNamespace(
            _params=utils.import_huggingface._get_config(source) | {"aux_num_out": None},
            _path="same.pth",
            _normalize_waveform=False,
        )

    for layer in (None, 1, 2):
        one = Same(weights=str(tmp_path / "torchaudio.pt"), layer=layer).frames(tone(300))[0]
        two = Transformers(model=str(tmp_path / "folder"), layer=layer).frames(tone(300))[0]
        np.testing.assert_allclose(one, two, atol=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("make", MAKES)
def test_a_gpu_gives_the_same_frames(folders, make):
    exact = Transformers(model=str(folders / make)).frames(tone(300))[0]
    for half, tolerance in ((True, 0.05), (False, 5e-3)):
        backbone = Transformers(model=str(folders / make), device="cuda", half=half)
        np.testing.assert_allclose(backbone.frames(tone(300))[0], exact, atol=tolerance)


def test_a_fine_tuned_recogniser_gives_its_encoder(folders, tmp_path):
    write(tmp_path, "wav2vec2", ending="ForCTC")
    one = Transformers(model=str(tmp_path))
    assert one.frames(tone(300))[0].shape == (49, 32)
    assert one.params == Transformers(model=str(folders / "wav2vec2")).params


def test_hashes_tell_weights_apart(folders, tmp_path):
    hashes = {Transformers(model=str(folders / make)).weights_sha256 for make in MAKES}
    assert len(hashes) == len(MAKES)
    write(tmp_path, "hubert")
    copy = Transformers(model=str(tmp_path))
    assert copy.weights_sha256 == Transformers(model=str(folders / "hubert")).weights_sha256


def test_a_spotter_is_loaded_with_its_folder_given_again(folders, tmp_path):
    backbone = Transformers(model=str(folders / "hubert"))
    assert "model" in backbone.machine_arguments
    assert "model" in Transformers(model="someone/model").machine_arguments, "a hub's name too"
    spotter = Spotter(backbone, "avg", "ncm")
    spotter.learn_many([tone(200), tone(1500)], ["low", "high"])
    spotter.save(tmp_path / "model.tapword")
    loaded = Spotter.load(tmp_path / "model.tapword", backbones=[backbone])
    assert loaded.predict(tone(200)).word == "low"
    with pytest.raises(ModelFileError, match=r"--backbone transformers:model=\.\.\.$"):
        Spotter.load(tmp_path / "model.tapword")


def test_foreign_folders_are_refused(tmp_path):
    def refused(message, kind=ModelFileError, model=tmp_path):
        with pytest.raises(kind, match=message):
            Transformers(model=str(model)).frames(tone(300))

    refused("say which encoder", Unavailable, "")
    refused("there is no folder", Unavailable, tmp_path / "a" / "b" / "c")
    refused(r"no preprocessor_config\.json")
    write(tmp_path, "wav2vec2")
    weights = tmp_path / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[:1000])
    refused("is not a speech encoder that can be read")
    weights.unlink()
    torch.save({"x": torch.zeros(1)}, tmp_path / "pytorch_model.bin")
    refused(r"no model\.safetensors in the folder")

    from safetensors.torch import load, save_file

    state = load(content)
    left_out = {name: x for name, x in state.items() if "layers.1.attention" not in name}
    save_file(left_out, weights, metadata={"format": "pt"})
    refused("does not hold all weights of its encoder: 8 are missing")
    unused = {name: x for name, x in state.items() if name != "masked_spec_embed"}
    save_file(unused, weights, metadata={"format": "pt"})
    assert Transformers(model=str(tmp_path)).frames(tone(300))[0].shape == (49, 32)
    configuration = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(configuration | {"intermediate_size": 48}))
    with pytest.raises(ModelFileError, match=r"9 are missing or of another shape \(first: enc"):
        Transformers(model=str(tmp_path), threads=2).frames(tone(300))
    preparation = tmp_path / "preprocessor_config.json"
    preparation.write_text(preparation.read_text().replace("16000", "8000"))
    with pytest.raises(InputError, match="takes 8000 Hz"):
        Transformers(model=str(tmp_path), device="cpu").frames(tone(300))
    (tmp_path / "config.json").write_text('{"model_type": "toaster"}')
    with pytest.raises(ModelFileError, match="is not a speech encoder"):
        _ = Transformers(model=str(tmp_path)).params


def test_arguments_are_checked(folders):
    with pytest.raises(InputError, match="layer must be 1 to"):
        Transformers(layer=0)
    with pytest.raises(InputError, match="layer must be 1 to 3, got 4"):
        Transformers(model=str(folders / "wavlm"), layer=4).frames(tone(300))
    with pytest.raises(InputError, match="Whisper takes 480000 samples at most"):
        Transformers(model=str(folders / "whisper")).frames(np.zeros(480_001, np.float32))
    with pytest.raises(InputError, match="at least 400"):
        Transformers(model=str(folders / "hubert")).frames(np.zeros(100, np.float32))
