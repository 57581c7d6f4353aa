import subprocess
import sys

import pytest

from tapword import registry
from tapword.errors import InputError
from tapword.registry import Part, build


def test_values_are_read_by_the_arguments_type():
    assert build("poolings", "tap:R=3").R == 3
    assert build("learners", "slda:eps=1e-3").eps == 1e-3
    backbone = build("backbones", "speech_embedding:layers=b64+emb,threads=2")
    assert backbone.layers == ("b64", "emb") and backbone.threads == 2
    assert build("backbones", "speech_embedding:layers=b64").layers == "b64"
    learner = build("learners", "cosine:prior=shipped,covariance=lowrank,rank=8,max_kb=64")
    assert (learner.prior, learner.covariance, learner.rank) == ("shipped", "lowrank", 8)
    assert learner.max_kb == 64 and build("learners", "cosine:max_kb=none").max_kb is None


def test_spec_leads_back_to_the_part():
    for kind, spec in [
        ("poolings", "tap:R=3"),
        ("poolings", "blocks:poolings=tap:R=2+tap:R=2+middle:n=4"),
        ("backbones", "speech_embedding:layers=b64+emb"),
        ("learners", "cosine:prior=shipped,covariance=full,max_kb=64.0"),
    ]:
        assert build(kind, spec).spec == spec
    assert build("poolings", "tap").spec == "tap"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("men", r"no pooling named 'men'; known: attentive, avg, "),
        ("tap:Q=3", "has no argument 'Q'; it takes: R"),
        ("tap:R", "expected key=value, got 'R'"),
        ("tap:R=three", "R must be int, got 'three'"),
        ("tap:R=0", "R must be a whole number from 1 to 32, got 0"),
        ("avg:R=1", "it takes: no arguments"),
    ],
)
def test_bad_names_say_what_is_known(spec, message):
    with pytest.raises(InputError, match=message):
        build("poolings", spec)


def test_store_and_restore_are_inverse():
    part = build("backbones", "speech_embedding:layers=b64+emb")
    stored = registry.store(part, skip=part.machine_arguments)
    assert stored == {"name": "speech_embedding", "arguments": {"layers": ["b64", "emb"]}}
    assert registry.restore("backbones", stored).arguments() == part.arguments()
    assert registry.describe("backbones", stored) == "speech_embedding:layers=b64+emb"


def test_a_renamed_part_is_read_by_its_former_names_and_stored_by_them():
    part = build("poolings", "looks:places=0.2,reaches=0.3")
    assert part.spec == "attentive:centers=0.2,widths=0.3"
    assert build("poolings", part.spec).arguments() == part.arguments()
    stored = {"name": "looks", "arguments": {"places": [0.2], "reaches": [0.3], "second": None}}
    assert registry.store(part) == stored
    assert registry.restore("poolings", stored).arguments() == part.arguments()
    assert (
        registry.describe("poolings", stored) == "attentive:centers=0.2,widths=0.3,frame_rate=none"
    )
    assert registry.describe("poolings", {"name": "gone", "arguments": {"n": 2}}) == "gone:n=2"


def test_every_class_says_what_it_is():
    for kind in registry.KINDS:
        for name, cls in registry.classes(kind).items():
            assert issubclass(cls, Part)
            assert registry.summary(cls), f"{kind}: {name} has no docstring"


def test_importing_and_listing_stay_light():
    code = (
        "import sys\nfrom tapword import Detector, Spotter\n"
        "late = {'importlib.metadata', 'onnxruntime', 'urllib.request'}\n"
        "assert not late & set(sys.modules), late & set(sys.modules)\n"
        "from tapword import registry\n"
        "[registry.classes(kind) for kind in registry.KINDS]\n"
        "heavy = {'scipy', 'torch', 'transformers', 'sklearn', 'openwakeword', 'ray'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("poolings", "tap:R=33"),
        ("poolings", "middle:n=1000000"),
        ("poolings", "maxw:l=1000000"),
        ("poolings", "flat:n_frames=1000000"),
        ("poolings", "rap:n_frames=1000000"),
        ("poolings", "isqrt_cov:iterations=16"),
        ("poolings", "blocks:poolings=" + "+".join(["avg"] * 17)),
        ("poolings", "blocks:poolings=blocks:poolings=avg"),
        ("learners", "icarl:buffer=1000001"),
        ("learners", "icarl:replay=1001"),
        ("learners", "cbcl:max_centroids=30001"),
        ("learners", "finetune:vocabulary=" + "+".join(map(str, range(10_001)))),
        ("learners", f"finetune:seed={2**53}"),
        ("backbones", "speech_embedding:threads=257"),
        ("backbones", "speech_embedding:layers=" + "+".join(["emb"] * 17)),
        ("backbones", "onnx:threads=257"),
        ("backbones", "hubert_base:threads=257"),
    ],
    ids=lambda text: text[:30],
)
def test_numbers_without_end_are_refused(kind, spec):
    with pytest.raises(InputError) as refused:
        build(kind, spec)
    assert len(str(refused.value)) < 400
