"""Every pooling against scipy or numpy, on made-up and on real frames."""

import json
import math

import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from tapword import registry
from tapword.errors import InputError
from tapword.poolings import stochastic
from tapword.spotter.encoder import block_poolings
from tests.conftest import shared


def pooling(spec: str):
    return registry.build("poolings", spec)


def moments(g: np.ndarray, order: int) -> np.ndarray:
    std = np.sqrt(scipy.stats.moment(g, 2))
    higher = [scipy.stats.moment(g, r) / std**r for r in range(3, order + 1)]
    return np.concatenate([g.mean(axis=0), std, *higher][:order])


def rectified(g: np.ndarray) -> np.ndarray:
    weights = np.maximum(g, 0)
    return np.where(weights.sum(axis=0) > 0, weights, 1)


def covariance_root(g: np.ndarray, channels: int, iterations: int) -> np.ndarray:
    """Each eigenvalue walks the Newton-Schulz steps by itself."""
    d = g.shape[1]
    if channels < d:
        q, r = np.linalg.qr(np.random.default_rng(0).standard_normal((d, channels)))
        g = g @ (q * np.sign(np.diag(r)))
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(g.T, bias=True)))
    trace = values.sum()
    y, z = values / trace, np.ones_like(values)
    for _ in range(iterations):
        step = (3 - z * y) / 2
        y, z = y * step, z * step
    root = (vectors * y) @ vectors.T * np.sqrt(trace)
    return root[np.triu_indices(len(root))]


def around_maximum(g: np.ndarray, l: int) -> np.ndarray:  # noqa: E741
    edges = np.pad(g, ((l, l), (0, 0)), mode="edge")
    columns = [edges[g[:, j].argmax() :, j][: 2 * l + 1] for j in range(g.shape[1])]
    return np.stack(columns, axis=1).ravel()


def in_the_middle(g: np.ndarray, n: int) -> np.ndarray:
    """Frames are repeated at both ends until there are enough, then cut alike at both."""
    lacking = max(n - len(g), 0)
    g = np.concatenate([g[:1]] * ((lacking + 1) // 2) + [g] + [g[-1:]] * (lacking // 2))
    first = (len(g) - n) // 2
    return g[first : first + n].ravel()


def attended(g: np.ndarray, places: list[float], reaches: list[float]) -> np.ndarray:
    """The word is the whole clip; each head is a mean weighted by position and logit."""
    x, draws = g[:, : -len(places)], g[:, -len(places) :].T
    heads = []
    for draw, place, reach in zip(draws, places, reaches, strict=True):
        share = (np.arange(len(g)) + 0.5) / len(g)
        weight = draw - ((share - place) / reach) ** 2 / 2
        heads.append(np.average(x, axis=0, weights=np.exp(weight - weight.max())))
    return np.concatenate([x.mean(axis=0), np.sqrt(x.var(axis=0) + 1e-4), *heads])


REFERENCE = {
    "avg": lambda g: g.mean(axis=0),
    "max": lambda g: g.max(axis=0),
    "mix": lambda g: (g.max(axis=0) + g.mean(axis=0)) / 2,
    "mix:alpha=0.2": lambda g: 0.2 * g.max(axis=0) + 0.8 * g.mean(axis=0),
    "stochastic": lambda g: np.average(g, axis=0, weights=rectified(g)),
    "lp": lambda g: np.sqrt((g**2).mean(axis=0)),
    "lp:p=3": lambda g: np.cbrt((np.abs(g) ** 3).mean(axis=0)),
    "lp:p=2.5": lambda g: (np.abs(g) ** 2.5).mean(axis=0) ** 0.4,
    "rap": lambda g: np.sort(g, axis=0)[::-1][: math.ceil(len(g) / 10)].ravel(),
    "rap:share=0.3": lambda g: np.sort(g, axis=0)[::-1][: math.ceil(3 * len(g) / 10)].ravel(),
    "avgmax": lambda g: np.concatenate([g.mean(axis=0), g.max(axis=0)]),
    "tstp": lambda g: moments(g, 2),
    "tsdp": lambda g: g.std(axis=0),
    "tap": lambda g: moments(g, 5),
    "tap:R=1": lambda g: moments(g, 1),
    "tap:R=8": lambda g: moments(g, 8),
    "isqrt_cov": lambda g: covariance_root(g, 64, 5),
    "isqrt_cov:channels=4,iterations=3": lambda g: covariance_root(g, 4, 3),
    "isqrt_cov:channels=1": lambda g: covariance_root(g, 1, 5),
    "maxw": lambda g: around_maximum(g, 2),
    "maxw:l=5": lambda g: around_maximum(g, 5),
    "flat": lambda g: g.ravel(),
    "middle": lambda g: in_the_middle(g, 6),
    "middle:n=1": lambda g: in_the_middle(g, 1),
    "middle:n=41": lambda g: in_the_middle(g, 41),
    "attentive:centers=0.2+0.7,widths=0.3+0.1": lambda g: attended(g, [0.2, 0.7], [0.3, 0.1]),
    "blocks": lambda g: moments(g, 5),
    "blocks:poolings=tap:R=2": lambda g: moments(g, 2),
}
SPECS = tuple(REFERENCE)


@pytest.fixture(scope="module")
def real() -> np.ndarray:
    with np.load(shared("oracle", "reference_learners.npz")) as arrays:
        return arrays["frames_test"]


def made_up(scale: float = 1, t: int = 30) -> np.ndarray:
    rng = np.random.default_rng(0)
    skewed = rng.standard_normal((6, t, 20)) + rng.exponential(2, (6, t, 20))
    return (scale * (skewed - 1)).astype(np.float32)


def check(spec: str, frames: np.ndarray) -> None:
    part = pooling(spec).with_length(frames.shape[1])
    wanted = np.stack([REFERENCE[spec](clip.astype(np.float64)) for clip in frames])
    got = part.pool(frames)
    assert got.shape == (len(frames), part.dim(frames.shape[2]))
    size = np.abs(wanted).max()
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5 * size)


def test_every_pooling_has_a_reference():
    assert set(registry.classes("poolings")) == {spec.partition(":")[0] for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("scale", [1e-4, 1, 1e4])
def test_reference(spec, scale):
    check(spec, made_up(scale))


@pytest.mark.parametrize("spec", SPECS)
def test_reference_on_real_frames(spec, real):
    check(spec, real)


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("t", [1, 2, 4000])
@pytest.mark.parametrize("value", [0, 0.1, -7.3, 1e-30, 1e30])
def test_constant_features(spec, t, value):
    frames = np.full((1, t, 3), value, dtype=np.float32)
    vector = pooling(spec).pool(frames)[0]
    assert np.isfinite(vector).all()
    if spec == "tsdp" or spec.startswith("isqrt_cov"):
        assert not vector.any()
    elif spec.startswith("attentive"):
        np.testing.assert_allclose(vector[[0, 2, 3]], frames[0, 0, 0], rtol=1e-4)
        assert vector[1] == pytest.approx(0.01)
    elif spec.startswith("lp"):
        np.testing.assert_allclose(vector, abs(frames[0, 0]), rtol=1e-5)
    elif spec.startswith(("t", "blocks")):
        np.testing.assert_allclose(vector[:3], frames[0, 0], rtol=1e-6)
        assert not vector[3:].any()
    else:
        np.testing.assert_allclose(vector, np.full(len(vector), frames[0, 0, 0]), rtol=1e-4)


# tap and its kin


def test_tap_by_hand():
    # Mean 2, deviations -1 -1 2, variance 2, third moment (-1 - 1 + 8) / 3 / 2 ** 1.5.
    wanted = [2, 2**0.5, 2 / 2**1.5, 1.5]
    for order in range(1, 5):
        vector = pooling(f"tap:R={order}").pool(np.array([[1.0], [1.0], [4.0]]))
        np.testing.assert_allclose(vector, wanted[:order], rtol=1e-6)


def test_tap_names_of_moments(real):
    clip = real[0].astype(np.float64)
    vector = pooling("tap").pool(real[0]).reshape(5, -1)
    np.testing.assert_allclose(vector[2], scipy.stats.skew(clip), rtol=1e-4, atol=1e-5)
    kurtosis = scipy.stats.kurtosis(clip, fisher=False)
    np.testing.assert_allclose(vector[3], kurtosis, rtol=1e-4)


def test_tap_sees_small_variations_on_a_large_offset():
    rng = np.random.default_rng(0)
    for spread in (1e-2, 1e-4, 1e-5):
        frames = (1 + spread * rng.standard_normal((49, 5))).astype(np.float32)
        wanted = moments(frames.astype(np.float64), 5)
        np.testing.assert_allclose(pooling("tap").pool(frames), wanted, rtol=1e-4, atol=1e-4)


def test_tap_takes_rounding_for_constant():
    clip = np.tile(np.float32(0.1), (49, 1))
    clip[::2] = np.nextafter(clip[0], np.float32(1))
    assert not pooling("tap").pool(clip)[1:].any()
    # At most 8 roundings of the mean.
    for roundings in (8, 9):
        spread = roundings * np.finfo(np.float32).eps
        std = 0 if roundings == 8 else spread
        assert pooling("tap:R=2").pool(np.array([[1 - spread], [1 + spread]]))[1] == std


@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e-21, 1e25, 1e37])
def test_tap_at_the_ends_of_float32(scale):
    frames = made_up(scale)
    frames[:, :, 0] = 0
    frames[:, :, 1] = made_up()[:, :, 1]
    wanted = np.stack([moments(clip, 5) for clip in made_up().astype(np.float64)])
    got = pooling("tap").pool(frames).reshape(6, 5, -1)
    wanted = wanted.reshape(6, 5, -1)
    assert not got[:, :, 0].any()
    rounding = 1e-3 if scale == 1e-40 else 1e-4  # denormal numbers have fewer digits
    np.testing.assert_allclose(got[:, 2:, 1:], wanted[:, 2:, 1:], rtol=rounding, atol=rounding)
    np.testing.assert_allclose(got[:, 1, 2:], scale * wanted[:, 1, 2:], rtol=rounding)


def test_tap_of_deviations_that_float32_cannot_hold():
    vector = pooling("tap").pool(np.array([[3e38], [-3e38]]))
    np.testing.assert_allclose(vector, [0, 3e38, 0, 1, 0], rtol=1e-6)


def test_tstp_is_tap_2_and_tsdp_its_half():
    frames = made_up()
    both = pooling("tstp").pool(frames)
    np.testing.assert_array_equal(both, pooling("tap:R=2").pool(frames))
    np.testing.assert_array_equal(both[:, 20:], pooling("tsdp").pool(frames))


# The rest, by hand


@pytest.mark.parametrize(
    ("spec", "vector"),
    [
        ("avg", [0, 3]),
        ("max", [4, 5]),
        ("mix:alpha=0.75", [3, 4.5]),
        ("avgmax", [0, 3, 4, 5]),
        ("stochastic", [4, 35 / 9]),
        ("lp:p=1", [8 / 3, 3]),
        ("lp", [(32 / 3) ** 0.5, (35 / 3) ** 0.5]),
        ("rap:share=0.4", [4, 5, 0, 3]),
        ("rap:share=0.5,n_frames=8", [4, 5, 0, 3, -4, 1, -4, 1]),
        ("rap:share=1", [4, 5, 0, 3, -4, 1]),
        ("maxw:l=0", [4, 5]),
        ("maxw:l=1", [-4, 3, 4, 5, 0, 5]),
        ("mix:alpha=0", [0, 3]),
        ("mix:alpha=1", [4, 5]),
        ("flat:n_frames=2", [-4, 1, 4, 3]),
        ("flat:n_frames=4", [-4, 1, 4, 3, 0, 5, 0, 0]),
    ],
)
def test_by_hand(spec, vector):
    frames = np.array([[-4.0, 1.0], [4.0, 3.0], [0.0, 5.0]])
    pooled = pooling(spec).pool(frames)
    np.testing.assert_allclose(pooled, vector, rtol=1e-6)
    assert pooled.dtype == np.float32


def test_rap_searches_a_long_clip_whole_and_never_invents_zeros():
    frames = np.arange(-20.0, 0)[:, None]
    np.testing.assert_array_equal(pooling("rap:share=0.2,n_frames=10").pool(frames), [-1, -2])
    np.testing.assert_array_equal(pooling("rap:share=0.2,n_frames=10").pool(frames[:1]), [-20, -20])


def test_rap_counts_as_on_paper():
    # 0.1 * 30 is a little above 3 in binary.
    counts = [pooling(f"rap:n_frames={n}").dim(1) for n in (1, 10, 11, 16, 30, 49, 70)]
    assert counts == [1, 1, 2, 2, 3, 5, 7]


def test_lp_of_a_small_feature_is_not_lost_beside_a_large_one():
    frames = np.array([[1e20, 1e-15], [3e20, 3e-15]])
    wanted = np.cbrt(14) * np.array([1e20, 1e-15])
    np.testing.assert_allclose(pooling("lp:p=3").pool(frames), wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["rap", "flat"])
def test_open_length_is_filled_in_once(name):
    part = pooling(name)
    with pytest.raises(InputError, match=f"{name}:n_frames=49"):
        part.dim(3)
    filled = part.with_length(16)
    assert (part.n_frames, filled.n_frames, filled.with_length(7).n_frames) == (None, 16, 16)
    with pytest.raises(InputError, match="from 1 to 100000, got 0"):
        part.with_length(0)


def test_maxw_needs_no_length():
    assert pooling("maxw:l=3").dim(10) == 70


def test_stochastic_draws_in_proportion():
    # 5,000 features with the same values draw independently of each other.
    column = np.array([-2.0, 1.0, 0.0, 3.0, 4.0])
    frames = np.repeat(column[:, None], 5000, axis=1)
    drawn = pooling("stochastic").pool_for_learning(frames)
    shares = [np.mean(drawn == value) for value in column]
    np.testing.assert_allclose(shares, [0, 1 / 8, 0, 3 / 8, 4 / 8], atol=0.03)
    np.testing.assert_allclose(drawn.mean(), pooling("stochastic").pool(frames).mean(), atol=0.05)


def test_stochastic_without_a_positive_activation_is_uniform():
    frames = np.repeat(np.array([[-3.0], [-1.0], [0.0]]), 5000, axis=1)
    drawn = pooling("stochastic").pool_for_learning(frames)
    assert all(abs(np.mean(drawn == value) - 1 / 3) < 0.03 for value in (-3, -1, 0))
    np.testing.assert_allclose(pooling("stochastic").pool(frames), -4 / 3, rtol=1e-6)


def test_stochastic_draw_hangs_on_seed_and_clip():
    frames = made_up()
    first = pooling("stochastic").pool_for_learning(frames)
    assert (first != pooling("stochastic:seed=1").pool_for_learning(frames)).any()
    back = pooling("stochastic").pool_for_learning(frames[::-1])
    np.testing.assert_array_equal(first, back[::-1])
    shifted = np.roll(frames, 1, axis=1)
    assert (first != pooling("stochastic").pool_for_learning(shifted)).any()


def drawn_by_hand(clip: np.ndarray, seed: int) -> np.ndarray:
    """Each feature's place goes round 100 times for each frame that its activity lies later."""
    places = np.random.default_rng(seed).random(clip.shape[1])
    chosen = []
    for place, column in zip(places, clip.astype(np.float64).T, strict=True):
        centre = np.average(np.arange(len(column)), weights=np.abs(column))
        reached = np.cumsum(rectified(column[:, None])[:, 0])
        draw = (place + 100 * centre) % 1
        chosen.append(np.searchsorted(reached, draw * reached[-1], side="right"))
    return clip[chosen, np.arange(clip.shape[1])]


@pytest.mark.parametrize("seed", [0, 7])
def test_stochastic_draw_by_hand(seed):
    # Vectors are kept, so that another draw would need another revision.
    frames = made_up()
    wanted = np.stack([drawn_by_hand(clip, seed) for clip in frames])
    part = pooling(f"stochastic:seed={seed}")
    # A feature's draw hangs on that feature, and on no unit.
    for unit in (1, 2.0**-100, 2.0**123):
        np.testing.assert_array_equal(part.pool_for_learning(unit * frames), unit * wanted)
    frames[:, :, 0] *= 64
    np.testing.assert_array_equal(part.pool_for_learning(frames)[:, 1:], wanted[:, 1:])


def test_stochastic_never_draws_a_frame_without_weight():
    # All activity is in frame 1, so that the draw is 100 % 1.
    frames = np.array([[0.0], [1.0], [0.0]])
    assert stochastic._drawn(frames, np.zeros(1)) == 1


def test_stochastic_draws_anew_for_every_clip():
    # Clips that differ as much as two takes of a word do; one feature fires in no frame.
    rng = np.random.default_rng(0)
    pattern = np.array([[1, -1], [0, -2], [3, -3], [4, -4]])
    frames = (pattern * (1 + 0.1 * rng.standard_normal((4000, 4, 2)))).astype(np.float32)
    drawn = pooling("stochastic").pool_for_learning(frames)
    which = (frames == drawn[:, None]).argmax(axis=1)
    for feature, shares in enumerate(([1 / 8, 0, 3 / 8, 4 / 8], [1 / 4] * 4)):
        found = np.bincount(which[:, feature], minlength=4) / len(frames)
        np.testing.assert_allclose(found, shares, atol=0.03)
    # One feature's draw says nothing of the other's.
    assert abs(np.corrcoef(which.T)[0, 1]) < 0.05


def test_stochastic_draws_the_same_after_rounding():
    frames = made_up(t=49)
    rng = np.random.default_rng(0)
    near = (frames * (1 + 1e-7 * rng.standard_normal(frames.shape))).astype(np.float32)
    assert (near != frames).mean() > 0.3
    drawn, again = (pooling("stochastic").pool_for_learning(one) for one in (frames, near))
    assert np.mean(np.isclose(drawn, again, rtol=1e-5)) > 0.98


def test_isqrt_cov_approaches_the_square_root():
    frames = np.random.default_rng(0).standard_normal((200, 4)) @ np.diag([1.0, 2, 3, 4])
    root = scipy.linalg.sqrtm(np.cov(frames.T, bias=True))[np.triu_indices(4)]
    exact = pooling("isqrt_cov:iterations=15").pool(frames)
    np.testing.assert_allclose(exact, root, rtol=1e-4, atol=1e-4)
    assert np.abs(pooling("isqrt_cov").pool(frames) - root).max() < 0.1


def test_isqrt_cov_does_not_hang_on_the_offset():
    # Multiples of 1/64, so that float32 holds them beside the offset as well.
    frames = np.round(64 * np.random.default_rng(0).standard_normal((30, 4))) / 64
    pooled = pooling("isqrt_cov").pool(frames)
    np.testing.assert_allclose(pooling("isqrt_cov").pool(frames + 2**16), pooled, rtol=1e-4)
    still = pooling("isqrt_cov").pool(np.full((30, 4), 0.1))
    assert still.dtype == np.float32 and not still.any()


def test_isqrt_cov_by_hand():
    # Covariance I / 2 in two channels, trace 1; one step of y = 1/2 gives 1/2 * (3 - 1/2) / 2.
    frames = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    one_step = pooling("isqrt_cov:iterations=1").pool(frames)
    np.testing.assert_allclose(one_step, [0.625, 0, 0.625], rtol=1e-6)


def test_isqrt_cov_stays_finite_without_full_rank():
    frames = made_up(t=3)
    assert np.isfinite(pooling("isqrt_cov:iterations=15").pool(frames)).all()
    assert pooling("isqrt_cov:channels=none").dim(96) == 96 * 97 // 2


# One pooling for each block

THREE = "blocks:poolings=tap:R=2+tap:R=2+middle"


def test_blocks_pool_each_block_by_its_own(rng):
    blocks = [rng.standard_normal((t, d)).astype(np.float32) for t, d in ((30, 4), (30, 4), (9, 5))]
    parts = pooling(THREE).per_block(3)
    got = np.concatenate([part.pool(block) for part, block in zip(parts, blocks, strict=True)])
    wanted = [moments(blocks[0], 2), moments(blocks[1], 2), in_the_middle(blocks[2], 6)]
    np.testing.assert_allclose(got, np.concatenate(wanted), rtol=1e-4, atol=1e-5)


def test_one_name_stands_for_all_blocks():
    assert [part.spec for part in pooling("blocks:poolings=tap:R=3").per_block(4)] == [
        "tap:R=3"
    ] * 4
    plain = pooling("avg")
    assert list(plain.per_block(3)) == [plain] * 3


def test_blocks_say_that_a_vector_is_learned_from():
    frames = made_up()
    drawn = pooling("stochastic").pool_for_learning(frames)
    part = pooling("blocks:poolings=stochastic")
    np.testing.assert_array_equal(part.pool_for_learning(frames), drawn)
    assert (part.pool(frames) != drawn).any()


def test_blocks_hold_up_to_16_poolings_and_none_of_their_own_kind():
    assert len(registry.build("poolings", "blocks", poolings=["avg"] * 16).per_block(16)) == 16
    with pytest.raises(InputError, match="1 to 16 names of poolings"):
        registry.build("poolings", "blocks", poolings=["avg"] * 17)
    for inner in ("blocks", "blocks:poolings=avg"):
        with pytest.raises(InputError, match="a block's pooling cannot be blocks again"):
            registry.build("poolings", "blocks", poolings=["avg", inner])


def test_every_block_needs_its_pooling():
    for n in (1, 2, 4):
        with pytest.raises(InputError, match=f"got 3 poolings for {n} blocks: give one for all"):
            pooling(THREE).per_block(n)
    with pytest.raises(InputError, match="got 3 poolings for 1 blocks"):
        pooling(THREE).pool(made_up())
    with pytest.raises(InputError, match="1 to 16 names of poolings"):
        registry.build("poolings", "blocks", poolings=())
    with pytest.raises(InputError, match="no pooling named 'men'"):
        pooling("blocks:poolings=tap+men")


def test_nested_names_lead_back_to_the_parts():
    part = pooling(THREE)
    assert part.poolings == ("tap:R=2", "tap:R=2", "middle") and part.spec == THREE
    stored = json.loads(json.dumps(registry.store(part)))
    assert registry.restore("poolings", stored).arguments() == part.arguments()
    assert registry.describe("poolings", stored) == THREE


def test_blocks_of_fixed_length_take_that_of_their_block():
    backbone = registry.build("backbones", "speech_embedding:layers=b64+emb")
    frames = backbone.frames(np.zeros(16_000, dtype=np.float32))
    flat, avg = block_poolings(pooling("blocks:poolings=flat+avg"), backbone)
    assert flat.dim(frames[0].shape[1]) == frames[0].size and avg.spec == "avg"


@pytest.mark.parametrize("scale", [1e-40, 1e-25, 1e25, 1e37])
@pytest.mark.parametrize("spec", ["lp", "lp:p=3", "lp:p=40", "isqrt_cov", "stochastic", "tstp"])
def test_no_overflow(spec, scale):
    wanted = scale * pooling(spec).pool(made_up()).astype(np.float64)
    got = pooling(spec).pool(made_up(scale))
    np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        ("tap:R=0", "0"),
        ("mix:alpha=1.5", "1.5"),
        ("mix:alpha=nan", "nan"),
        ("lp:p=0.5", "0.5"),
        ("lp:p=inf", "inf"),
        ("rap:share=0", "0.0"),
        ("rap:share=1.1", "1.1"),
        ("rap:n_frames=0", "0"),
        ("flat:n_frames=-1", "-1"),
        ("maxw:l=-1", "-1"),
        ("middle:n=0", "0"),
        ("middle:n=100001", "100001"),
        ("middle:frame_rate=0", "0"),
        ("middle:frame_rate=100001", "100001"),
        ("attentive:centers=0.5+nan,widths=1+1", r"\(0.5, nan\)"),
        ("attentive:centers=0.5,widths=0", r"\(0.0,\)"),
        ("attentive:centers=0.5,widths=1000", r"\(1000.0,\)"),
        ("attentive:centers=0.5,widths=1+1", r"\(1.0, 1.0\)"),
        ("stochastic:seed=-1", "-1"),
        ("isqrt_cov:channels=0", "0"),
        ("isqrt_cov:iterations=0", "0"),
        ("isqrt_cov:iterations=16", "16"),
    ],
)
def test_refused_arguments_are_shown(spec, shown):
    name = spec.partition(":")[0]
    with pytest.raises(InputError, match=f"^{name}: .*got {shown}$"):
        pooling(spec)


def test_part_of_a_number_is_refused():
    with pytest.raises(InputError, match=r"^tap: R must be a whole number from 1 to 32, got 2\.5$"):
        registry.build("poolings", "tap", R=2.5)


def test_attentive_takes_the_middle_of_a_second_for_a_word_and_all_but_the_margins_of_a_phrase():
    part = pooling("attentive:centers=0.5,widths=1").with_frame_rate(20)
    for t, first, last in ((20, 3.5, 16.5), (10, 0, 10), (40, 2, 38)):
        frames = np.zeros((t, 2), dtype=np.float32)
        # What a frame adds to the mean is how much of it lies in the word.
        counted = []
        for at in range(t):
            frames[:, 0] = 0
            frames[at, 0] = 1
            counted.append(part.pool(frames)[0] * (last - first))
        wanted = np.clip(np.minimum(np.arange(t) + 1, last) - np.maximum(np.arange(t), first), 0, 1)
        np.testing.assert_allclose(counted, wanted, atol=1e-5)


def test_heads_of_a_second_are_centered_in_the_word():
    """Shares are of the word from its first to its last frame, not of the clip around it."""
    frames = np.column_stack([np.arange(20.0), np.zeros(20)]).astype(np.float32)
    for place in (0.0, 0.25, 1.0):
        part = pooling(f"attentive:centers={place},widths=0.1").with_frame_rate(20)
        share = (np.arange(20) + 0.5 - 3.5) / 13
        weights = np.exp(-np.square((share - place) / 0.1) / 2)
        np.testing.assert_allclose(
            part.pool(frames)[2], weights @ frames[:, 0] / weights.sum(), 1e-5
        )
        assert part.pool(frames).dtype == np.float32
    assert part.with_frame_rate(7) is part


def test_heads_of_a_phrase_are_spread_evenly_without_logits():
    part = pooling("attentive:centers=0+0.1,widths=0.3+0.2").with_frame_rate(20)
    frames = np.column_stack([np.arange(40.0), np.eye(40)[:, [30, 5]]]).astype(np.float32)
    share = (np.arange(40) + 0.5 - 2) / 36
    wanted = []
    for place in (0.25, 0.75):
        weights = np.exp(-np.square((share - place) / 0.25) / 2)
        wanted.append(weights @ frames[:, 0] / weights.sum())
    np.testing.assert_allclose(part.pool(frames)[2:], wanted, rtol=1e-5)
    assert part.revision == 1, "vectors that were kept before are computed anew"


def test_middle_frames_of_a_clip_longer_than_a_second_are_spread():
    frames = np.arange(10.0)[:, None]
    part = pooling("middle:n=3").with_frame_rate(9)
    # Middles of the thirds of ten frames.
    np.testing.assert_array_equal(part.pool(frames), [1, 5, 8])
    np.testing.assert_array_equal(part.pool(frames[:9]), [3, 4, 5])
    np.testing.assert_array_equal(pooling("middle:n=3").pool(frames), [3, 4, 5])
    assert part.with_frame_rate(20) is part and part.frame_rate == 9
    np.testing.assert_array_equal(pooling("middle:n=2,frame_rate=1").pool(frames[:2]), [0, 1])


def test_attentive_refuses_frames_without_logits():
    with pytest.raises(InputError, match="frames have 5 numbers; 5 heads need more"):
        pooling("attentive").pool(np.zeros((4, 5)))
    with pytest.raises(InputError, match="as many numbers above 0 as there are centers"):
        pooling("attentive:widths=0.1")
    assert pooling("attentive").groups(101) == [192, 480]
