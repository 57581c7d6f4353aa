import pytest

from tapword.errors import InputError
from tapword.research.experiment import make
from tapword.spotter import presets

SMALL = presets.preset(presets.DEFAULT)


def parts(one):
    backbones, poolings = one.encoder.backbones, one.encoder.poolings
    return tuple(b.spec for b in backbones), tuple(p.spec for p in poolings), one.learners


def test_nothing_named_is_the_default_preset():
    [one] = make()
    assert one.size == presets.DEFAULT and one.encoder.whitenings
    assert parts(one) == (SMALL.backbones, SMALL.poolings, [SMALL.learner])
    assert one.encoder.preparation == (SMALL.align, SMALL.augment)


def test_a_preset_whose_learner_needs_a_whitening_is_not_run_without():
    with pytest.raises(InputError, match="needs a whitening, got whitening='none'"):
        make(sizes=["small"], whitening="none")
    [plain] = make(learners=[presets.UNWHITENED], whitening="none")
    assert plain.learners == [presets.UNWHITENED] and not plain.encoder.whitenings


def test_parts_that_are_not_named_are_the_presets():
    [one] = make(learners=["ncm", "slda"])
    assert parts(one) == (SMALL.backbones, SMALL.poolings, ["ncm", "slda"])
    assert one.encoder.preparation == (SMALL.align, SMALL.augment)
    assert one.size is None and not one.encoder.whitenings
    [plain] = make(learners=["ncm"], align=False, augment=False)
    assert plain.encoder.preparation == (False, False)
    [other] = make(backbones=["logmel"])
    assert parts(other) == (("logmel",), (presets.POOLING,), ["cosine:covariance=full"])
    assert other.encoder.preparation == (False, False)


def test_every_combination_is_made_and_backbones_are_shared():
    made = make(["logmel", "speech_embedding"], ["avg", "tap"], ["ncm"], sizes=["small"])
    assert [one.size for one in made] == ["small", None, None, None, None]
    names = [(one.encoder.backbones[0].name, one.encoder.poolings[0].name) for one in made[1:]]
    assert names == [
        ("logmel", "avg"),
        ("logmel", "tap"),
        ("speech_embedding", "avg"),
        ("speech_embedding", "tap"),
    ]
    assert made[1].encoder.backbones[0] is made[2].encoder.backbones[0]
