"""The paper's six backbones: small networks of the same make, and wav2vec2_base at full size."""

import dataclasses
import gc
import importlib
import json
import pickle
import sys
import types
import weakref
from functools import partial

import numpy as np
import pytest

from tapword import Spotter, registry
from tapword.backbones import checkpoints
from tapword.backbones.base import Unavailable
from tapword.backbones.emformer_base import EmformerBase
from tapword.backbones.torchaudio_bundles import HubertLarge, Wav2vec2Base
from tapword.errors import InputError, ModelFileError
from tapword.spotter import store
from tapword.spotter.encoder import Encoded, pool_audio
from tests.conftest import tone

torch = pytest.importorskip("torch", reason="needs the extra torch")
try:
    import torchaudio.models
    import torchaudio.pipelines
except (ImportError, OSError) as error:
    pytest.skip(f"torchaudio cannot be imported: {error}", allow_module_level=True)

# Trained parameters and transformer layers of the encoders, as published.
KNOWN = {
    "wav2vec2_base": (94_370_944, 12),
    "wav2vec2_large": (315_427_968, 24),
    "hubert_base": (94_370_944, 12),
    "hubert_large": (315_434_112, 24),
    "hubert_xlarge": (962_492_544, 48),
    "emformer_base": (63_605_760, 20),
}
SMALL = {
    "extractor_conv_layer_config": [(16, 10, 5)] + [(16, 3, 2)] * 4 + [(16, 2, 2)] * 2,
    "encoder_embed_dim": 32,
    "encoder_num_layers": 3,
    "encoder_num_heads": 4,
    "encoder_ff_interm_features": 64,
    "encoder_pos_conv_kernel": 16,
    "encoder_pos_conv_groups": 4,
}


class Small(Wav2vec2Base):
    public_name = "small"
    layers, width, inner_width = 3, 32, 32
    bundle = types.SimpleNamespace(
        _params=torchaudio.pipelines.WAV2VEC2_BASE._params | SMALL,
        _path="small.pth",
        _normalize_waveform=False,
    )


class SmallNormalised(HubertLarge):
    public_name = "small_normalised"
    layers, width, inner_width = 3, 32, 32
    bundle = types.SimpleNamespace(
        _params=torchaudio.pipelines.HUBERT_LARGE._params | SMALL,
        _path="small_normalised.pth",
        _normalize_waveform=True,
    )


class SmallEmformer(EmformerBase):
    public_name = "small_emformer"
    layers, width, inner_width = 2, 24, 32
    bundle = dataclasses.replace(
        torchaudio.pipelines.EMFORMER_RNNT_BASE_LIBRISPEECH,
        _rnnt_factory_func=partial(
            torchaudio.models.emformer_rnnt_model,
            input_dim=80,
            encoding_dim=24,
            num_symbols=11,
            segment_length=16,
            right_context_length=4,
            time_reduction_input_dim=8,
            time_reduction_stride=4,
            transformer_num_heads=4,
            transformer_ffn_dim=48,
            transformer_num_layers=2,
            transformer_dropout=0.1,
            transformer_activation="gelu",
            transformer_left_context_length=30,
            transformer_max_memory_size=0,
            transformer_weight_init_scale_strategy="depthwise",
            transformer_tanh_on_mem=True,
            symbol_embedding_dim=8,
            num_lstm_layers=1,
            lstm_layer_norm=True,
            lstm_layer_norm_epsilon=1e-3,
            lstm_dropout=0.3,
        ),
    )


EVERY_SMALL = pytest.mark.parametrize("cls", [Small, SmallNormalised, SmallEmformer])


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
def full_size():
    return Wav2vec2Base(weights="random")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """An empty torch hub cache on a machine without a network."""

    def refuse(url, path):
        raise OSError("no network")

    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    monkeypatch.setattr(checkpoints, "download", refuse)
    return tmp_path / "hub"


def frames(backbone, clip=None):
    return backbone.frames(tone(300) if clip is None else clip)[0]


@pytest.mark.parametrize("name", KNOWN)
def test_parameters_and_layers_are_counted_without_weights(name):
    backbone = registry.build("backbones", name)
    params, layers = KNOWN[name]
    assert backbone.params == params
    assert backbone.layers == layers
    with torch.device("meta"):
        model = backbone.make_model()
    blocks = (
        model.transformer.emformer_layers
        if name == "emformer_base"
        else model.encoder.transformer.layers
    )
    assert len(blocks) == layers


def test_wav2vec2_base_at_full_size(full_size):
    one = frames(full_size)
    assert one.shape == (49, 768) and one.dtype == np.float32 and np.isfinite(one).all()
    assert frames(full_size, tone(300, 0.1)).shape == (4, 768)
    np.testing.assert_array_equal(one, frames(Wav2vec2Base(weights="random")))
    assert frames(Wav2vec2Base(weights="random", layer=6)).shape == (49, 768)


def test_a_spotter_with_a_torch_backbone_is_saved_and_loaded(full_size, tmp_path):
    spotter = Spotter("wav2vec2_base:weights=random", "tap", "ncm")
    spotter.learn_many([tone(200), tone(1500)], ["low", "high"])
    spotter.save(tmp_path / "model.tapword")
    loaded = Spotter.load(tmp_path / "model.tapword")
    assert loaded.encoder.backbones[0].spec == "wav2vec2_base:weights=random"
    assert loaded.predict(tone(1500)).word == "high"


def test_torch_weights_open_on_first_use_and_must_be_the_model_s(full_size, tmp_path, monkeypatch):
    path = tmp_path / "model.tap"
    spotter = Spotter("wav2vec2_base:weights=random", "tap:R=1", "ncm")
    spotter.learn_encoded(Encoded.one_second(np.zeros((1, 768), np.float32)), ["low"])
    spotter.save(path)
    header, arrays = store.read(path)
    header["backbones"][0]["weights_sha256"] = "ab" * 32
    path.write_bytes(store.pack(header, arrays))
    with monkeypatch.context() as patch:
        patch.setattr(Wav2vec2Base, "_import", pytest.fail)
        loaded = Spotter.load(path)
    with pytest.raises(ModelFileError, match="taught with weights abababababab… of wav2vec2_base"):
        loaded.predict(tone(300))
    # A backbone that somebody else uses is not told what a file claims of it.
    own = Wav2vec2Base(weights="random")
    with pytest.raises(ModelFileError, match="taught with weights abababababab… of wav2vec2_base"):
        Spotter.load(path, [own])
    spotter.save(path, overwrite=True)
    assert Spotter.load(path, [own]).words == {"low": 1}


@EVERY_SMALL
def test_random_weights_follow_the_seed(cls):
    before = torch.random.get_rng_state()
    one, same, other = (cls(weights="random", seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(frames(one), frames(same))
    assert np.abs(frames(one) - frames(other)).max() > 1e-3
    assert one.weights_sha256 == same.weights_sha256 != other.weights_sha256
    torch.testing.assert_close(torch.random.get_rng_state(), before)


@EVERY_SMALL
def test_padding_and_neighbours_change_nothing(cls):
    backbone = cls(weights="random")
    clips = [tone(200 + 50 * i, 0.3 + 0.1 * (i % 3)) * (i + 1) / 8 for i in range(7)]
    for blocks, clip in zip(backbone.frames_many(clips), clips, strict=True):
        np.testing.assert_allclose(blocks[0], frames(backbone, clip), atol=2e-5)


@EVERY_SMALL
def test_networks_are_frozen_shared_and_freed(cls):
    one, two = cls(weights="random", seed=9), cls(weights="random", seed=9)
    assert one.network is two.network
    assert not one.network.model.training
    assert not any(x.requires_grad for x in one.network.model.parameters())
    assert len(pickle.dumps(one)) < 1000
    network = weakref.ref(one.network)
    del one, two
    gc.collect()
    assert network() is None


@pytest.mark.parametrize("cls", [Small, SmallNormalised])
def test_frames_are_those_of_the_bundle(cls):
    backbone = cls(weights="random")
    model = backbone.network.model
    if cls.bundle._normalize_waveform:
        utilities = importlib.import_module("torchaudio.pipelines._wav2vec2.utils")
        model = utilities._extend_model(model, normalize_waveform=True)
    clip = torch.from_numpy(tone(300))[None]
    with torch.inference_mode():
        expected = model(clip)[0][0].numpy()
        layers = model.extract_features(clip)[0]
    np.testing.assert_allclose(frames(backbone), expected, atol=1e-5)
    for number, layer in enumerate(layers, 1):
        given = frames(cls(weights="random", layer=number))
        np.testing.assert_allclose(given, layer[0].numpy(), atol=1e-5)


def save_random(cls, path, seed=4):
    state = cls(weights="random", seed=seed).network.model.state_dict()
    if path.suffix == ".safetensors":
        importlib.import_module("safetensors.torch").save_file(state, path)
    else:
        torch.save(state, path)


def test_checkpoints_are_read_in_both_formats_and_from_the_hub(hub, tmp_path):
    made = Small(weights="random", seed=4)
    (hub / "checkpoints").mkdir(parents=True)
    paths = [tmp_path / "a.pt", tmp_path / "b.safetensors", hub / "checkpoints" / "small.pth"]
    for path in paths:
        save_random(Small, path)
    read = [Small(weights=str(paths[0])), Small(weights=str(paths[1])), Small()]
    for backbone in read:
        np.testing.assert_array_equal(frames(backbone), frames(made))
    assert len({backbone.weights_sha256 for backbone in read}) == 1
    save_random(Small, paths[0], seed=5)
    assert Small(weights=str(paths[0]), seed=1).weights_sha256 != made.weights_sha256
    assert "weights" in read[0].machine_arguments
    assert "weights" not in read[2].machine_arguments


def test_old_names_of_weight_norm_are_read(tmp_path):
    save_random(Small, tmp_path / "new.pt")
    state = torch.load(tmp_path / "new.pt", weights_only=True)
    renamed = {"original0": "weight_g", "original1": "weight_v"}
    old = {}
    for name, tensor in state.items():
        stem, _, last = name.partition("parametrizations.weight.")
        old[stem + renamed.get(last, last)] = tensor
    assert old.keys() != state.keys()
    torch.save(old, tmp_path / "old.pt")
    one, two = (Small(weights=str(tmp_path / name)) for name in ("new.pt", "old.pt"))
    np.testing.assert_array_equal(frames(one), frames(two))
    assert one.weights_sha256 == two.weights_sha256


class Foreign:
    """Something that a pickle would run code for."""


def test_wrong_checkpoints_are_refused(tmp_path):
    def refused(content, message, kind=ModelFileError, name="wrong.pt"):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content is not None:
            torch.save(content, path)
        with pytest.raises(kind, match=message):
            frames(Small(weights=str(path)))

    good = Small(weights="random").network.model.state_dict()
    refused(None, "no weight file at", InputError, "absent.pt")
    refused(b"not a network", "is no state dict")
    refused(b"not a network", "no safetensors file", name="wrong.safetensors")
    refused({"model": Foreign()}, "is no state dict")
    refused({"step": 3}, "holds more than tensors")
    refused({"lm_head.weight": torch.zeros(3)}, r"are unexpected.*transformers:model=FOLDER")
    refused(dict(list(good.items())[:-1]), r"1 tensors are missing \(first: encoder")
    refused(good | {"aux.weight": torch.zeros(2)}, r"1 are unexpected \(first: aux.weight\)")
    name = "encoder.feature_projection.projection.weight"
    refused(good | {name: torch.zeros(2, 2)}, f"size mismatch for {name}")


def test_weights_that_cannot_be_had_are_named(hub):
    with pytest.raises(Unavailable) as caught:
        frames(Wav2vec2Base())
    message, path = str(caught.value), hub / "checkpoints" / "wav2vec2_fairseq_base_ls960.pth"
    assert "torchaudio/models/wav2vec2_fairseq_base_ls960.pth" in message
    assert str(path) in message and "weights=PATH" in message and "no network" in message
    with pytest.raises(Unavailable, match="emformer_rnnt_base_librispeech"):
        frames(EmformerBase())


def statistics(path):
    rng = np.random.default_rng(0)
    stored = {"mean": rng.uniform(12, 17, 80), "invstddev": rng.uniform(0.1, 0.3, 80)}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({key: list(value) for key, value in stored.items()}))


def test_emformer_is_the_pipeline_of_the_bundle(hub):
    bundle = SmallEmformer.bundle
    torch.manual_seed(0)
    recogniser = bundle._rnnt_factory_func().eval()
    (hub / "torchaudio" / "models").mkdir(parents=True)
    torch.save(recogniser.state_dict(), hub / "torchaudio" / bundle._rnnt_path)
    statistics(hub / "torchaudio" / bundle._global_stats_path)
    with torch.inference_mode():
        features, length = bundle.get_feature_extractor()(torch.from_numpy(tone(300)))
        expected = recogniser.transcribe(features[None], length)[0][0].numpy()
    given = frames(SmallEmformer())
    assert given.shape == (25, 24)
    np.testing.assert_allclose(given, expected, atol=1e-5)
    # The last layer, put through what follows it, is the encoder's output.
    encoder = recogniser.transcriber
    with torch.inference_mode():
        last = torch.from_numpy(frames(SmallEmformer(layer=2)))
        after = encoder.layer_norm(encoder.output_linear(last)).numpy()
    np.testing.assert_allclose(after, expected, atol=1e-5)
    assert frames(SmallEmformer(layer=1)).shape == (25, 32)


def test_emformer_statistics_lie_beside_a_checkpoint(hub, tmp_path):
    path = tmp_path / "own" / "encoder.safetensors"
    path.parent.mkdir()
    save_random(SmallEmformer, path)
    with pytest.raises(Unavailable, match="global_stats_rnnt_librispeech"):
        frames(SmallEmformer(weights=str(path)))
    beside = path.with_name("global_stats_rnnt_librispeech.json")
    statistics(beside)
    first = SmallEmformer(weights=str(path))
    assert frames(first).shape == (25, 24)
    beside.write_text(beside.read_text().replace("1", "2"))
    assert SmallEmformer(weights=str(path), device="cpu", seed=1).params == first.params
    first_hash = first.weights_sha256
    del first
    gc.collect()
    assert SmallEmformer(weights=str(path)).weights_sha256 != first_hash
    gc.collect()
    beside.write_text('{"mean": [1]}')
    with pytest.raises(ModelFileError, match="front end's statistics"):
        frames(SmallEmformer(weights=str(path)))


def test_arguments_are_checked():
    with pytest.raises(InputError, match="layer must be 1 to 12, got 13"):
        Wav2vec2Base(layer=13)
    with pytest.raises(InputError, match="threads must be a whole number from 1 to 256, got 0"):
        EmformerBase(threads=0)
    with pytest.raises(InputError, match="weights must be pretrained, random or a file"):
        Wav2vec2Base(weights="")
    with pytest.raises(InputError, match="device must be auto, cpu, cuda"):
        frames(Small(weights="random", device="toaster"))
    with pytest.raises(InputError, match="'cuda:99' is not on this machine"):
        frames(Small(weights="random", device="cuda:99"))
    with pytest.raises(InputError, match="399 samples; at least 400"):
        frames(Small(weights="random"), tone(300)[:399])
    assert frames(Small(weights="random"), tone(300)[:400]).shape == (1, 32)
    assert frames(SmallEmformer(weights="random"), tone(300)[:480]).shape == (1, 24)


def test_threads_are_put_back():
    before = torch.get_num_threads()
    backbone = Small(weights="random", threads=before + 1)
    seen = []
    model = backbone.network.model
    hook = model.register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    given = frames(backbone)
    hook.remove()
    assert seen == [before + 1]
    assert torch.get_num_threads() == before
    np.testing.assert_allclose(given, frames(Small(weights="random")), atol=1e-5)


def test_half_precision_is_for_gpus_alone():
    backbone = Small(weights="random", half=True)
    assert backbone.precision == "float32"
    assert {x.dtype for x in backbone.network.model.parameters()} == {torch.float32}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@EVERY_SMALL
def test_a_gpu_gives_the_same_frames(cls):
    # Noise: Emformer's front end jumps at levels that the silence around a pure tone crosses.
    clip = 0.1 * np.random.default_rng(0).standard_normal(16_000, dtype=np.float32)
    exact = frames(cls(weights="random"), clip)
    half = cls(weights="random", device="cuda")
    assert half.precision == "float16"
    np.testing.assert_allclose(frames(half, clip), exact, atol=0.05)
    np.testing.assert_array_equal(frames(half, clip), frames(half, clip))
    single = frames(cls(weights="random", device="cuda", half=False), clip)
    np.testing.assert_allclose(single, exact, atol=1e-3)


class FewSamples(Small):
    public_name = "few_samples"
    max_samples = 40_000


def test_long_clips_go_through_in_smaller_batches():
    whole = Small(weights="random").frames_many([tone(200 + 50 * i) for i in range(5)])
    parts = FewSamples(weights="random").frames_many([tone(200 + 50 * i) for i in range(5)])
    for one, two in zip(whole, parts, strict=True):
        np.testing.assert_allclose(one[0], two[0], atol=2e-5)


def test_a_torchaudio_that_does_not_load_is_named(tmp_path, monkeypatch):
    (tmp_path / "torchaudio").mkdir()
    broken = 'raise OSError("Could not load this library: _torchaudio.so\\nmore")\n'
    (tmp_path / "torchaudio" / "__init__.py").write_text(broken)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchaudio"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(Unavailable, match="torchaudio is installed but cannot be imported"):
        _ = Wav2vec2Base().params


@pytest.mark.soak
@pytest.mark.parametrize("name", KNOWN)
def test_every_backbone_at_full_size(name, tmp_path):
    backbone = registry.build("backbones", f"{name}:weights=random")
    given = frames(backbone)
    steps = 25 if name == "emformer_base" else 49
    assert given.shape == (steps, *backbone.dims) and np.isfinite(given).all()
    path = tmp_path / "weights.safetensors"
    importlib.import_module("safetensors.torch").save_file(
        backbone.network.model.state_dict(), path
    )
    del backbone
    statistics(tmp_path / "global_stats_rnnt_librispeech.json")
    again = registry.build("backbones", f"{name}:weights={path}")
    assert frames(again).shape == given.shape
    if name != "emformer_base":
        np.testing.assert_allclose(frames(again), given, atol=1e-5)


@pytest.mark.parametrize("pooling", ["avg", "tap:R=1", "tap:R=2", "tap:R=5"])
def test_pooling_on_the_device_equals_numpy(pooling):
    part = registry.build("poolings", pooling)
    frames = np.random.default_rng(0).normal(3, 2, (4, 20, 7)).astype(np.float32)
    frames[:, :, 3] = 0.1
    frames[:, :, 4] = 0
    # So near to each other, beside their size, that they count as constant.
    frames[:, :, 5] = 1000 + 2**-12 * (np.arange(20) % 2)
    pooled = part.reduce_tensor(torch.from_numpy(frames)).numpy()
    np.testing.assert_allclose(pooled, part.pool(frames), rtol=1e-4, atol=1e-5)


class OnDevice(Small):
    public_name = "on_device"

    def tensors(self, audio):
        """Leave frames where they are, as with a GPU."""
        return [torch.from_numpy(np.stack([blocks[0] for blocks in self.frames_many(audio)]))]


def test_clips_pooled_on_the_device_keep_their_order():
    clips = [tone(300, 0.3), tone(400, 0.2), tone(500, 0.3), tone(600, 0.2)]
    poolings = [[registry.build("poolings", name)] for name in ("avg", "tap")]
    expected = pool_audio(Small(weights="random"), poolings, clips, learning=True)
    given = pool_audio(OnDevice(weights="random"), poolings, clips, learning=True)
    for one, two in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)
