"""Windows cut from long recordings and augmented by rooms and noise, on a GPU.

Nothing here waits for the GPU, so a whole training step can be recorded once and replayed.
"""

import torch
from network import Mel
from noises import Noises
from torch.nn import functional as F

# Samples per measurement of loudness, as in `tapword.audio.align`.
HOP = 160
# Signal-to-noise ratio of a word, in dB.
NOISE = (-5.0, 30.0)
# Factors of resonances for other vocal tracts, and the share of the band up to which they hold.
TRACTS = (0.86, 0.9, 0.94, 0.97, 1.03, 1.06, 1.1, 1.16)
KNEE = 0.7


def cut(audio: torch.Tensor, spans: torch.Tensor, length: int, vary: bool = True) -> tuple:
    """Cut windows (b, length) around words, spoken a little faster or slower.

    Returns the windows in [-1, 1], and where the word begins and ends in them, in samples (b,).
    """
    b, device = len(spans), audio.device
    start, stop = spans[:, 0], spans[:, 1]
    speed = 1 + (_uniform(b, -0.16, 0.16, device) if vary else torch.zeros(b, device=device))
    half = (stop - start).float() / 2 / speed
    room = (length / 2 - half - 1_600).clamp(0, 3_000)
    shift = room * (_uniform(b, -1, 1, device) if vary else 0)
    at = torch.arange(length, device=device)[None] - length / 2 - shift[:, None]
    # Positions are relative to the word's middle, so float32 is exact enough.
    place = at * speed[:, None]
    low = place.floor()
    part = place - low
    index = (low.long() + ((start + stop) // 2)[:, None]).clamp(0, len(audio) - 2)
    x = audio[index].float() * (1 - part) + audio[index + 1].float() * part
    return x / 32_768, length / 2 + shift - half, length / 2 + shift + half


class Tracts(torch.nn.Module):
    """Log-mel frames of windows as vocal tracts of other lengths would give them.

    A tract that is shorter by a factor moves all resonances up by it, and the pitch stays. Half of
    the windows keep their own. `mel` is the front end whose matrix is warped.
    """

    def __init__(self, mel: Mel):
        super().__init__()
        self.mel = mel
        bins, _ = mel.weights.shape
        banks = []
        for factor in (1.0, *TRACTS):
            # Linear up to a knee, then towards the highest frequency, which stays.
            at = torch.arange(bins, dtype=torch.float32, device=mel.weights.device)
            knee = KNEE * (bins - 1) * min(1.0, 1.0 / factor)
            above = (bins - 1 - factor * knee) / (bins - 1 - knee)
            at = torch.where(at <= knee, at * factor, factor * knee + (at - knee) * above)
            low = at.floor().long().clamp(max=bins - 2)
            part = (at - low)[:, None]
            weights = mel.weights[low] * (1 - part) + mel.weights[low + 1] * part
            sums = weights.sum(0).clamp_min(1e-3)
            banks.append(weights * (mel.weights.sum(0) / sums))
        self.register_buffer("banks", torch.stack(banks))

    def forward(self, rows: torch.Tensor, count: int) -> torch.Tensor:
        """Rows of windows (r, n) -> windows (count, bands, t)."""
        steps = rows.numel() // count // HOP
        spectrum = self.mel.spectrum(rows)
        missing = rows.shape[1] // HOP - spectrum.shape[1]
        spectrum = torch.cat([spectrum, spectrum[:, -1:].expand(-1, missing, -1)], 1)
        spectrum = spectrum.reshape(count, steps, -1)
        drawn = _whole(count, len(TRACTS), rows.device) + 1
        drawn = torch.where(_some(count, 0.5, rows.device)[:, 0], 0, drawn)
        return self.mel.log(torch.bmm(spectrum, self.banks[drawn])).mT


def isolate(x: torch.Tensor, start: torch.Tensor, stop: torch.Tensor, share: float) -> torch.Tensor:
    """Silence the neighbours of the word in some of the windows."""
    b, n = x.shape
    at = torch.arange(n, device=x.device)[None]
    before, after = (_uniform(b, 300, 1_500, x.device)[:, None] for _ in range(2))
    fade = torch.minimum(at - start[:, None] + before, stop[:, None] + after - at) / 300
    return x * torch.where(_some(b, share, x.device), fade.clamp(0, 1), 1.0)


def spoil(x: torch.Tensor, start: torch.Tensor, stop: torch.Tensor, noises: Noises) -> torch.Tensor:
    """Rooms, microphones, noise, other voices, clipping, level: each in some of the windows."""
    b, n = x.shape
    device = x.device
    # A length with a fast transform; longer reverberation is cut.
    size = -(-(n + 3_200) // 3_200) * 3_200
    # Some windows stay nearly clean, to follow the teachers closely there.
    fair = _some(b, 0.2, device)
    # A room: direct sound, early echoes and a tail that decays in 0.05 to 0.7 s.
    at = torch.arange(6_000, device=device)[None] / 16_000
    decay = torch.exp(-6.9 * at / _uniform(b, 0.05, 0.7, device)[:, None])
    echo = torch.randn(b, 6_000, device=device) * decay
    echo *= torch.rand(b, 6_000, device=device) < 0.3
    echo *= torch.where(_some(b, 0.5, device) & ~fair, _uniform(b, 0, 0.3, device)[:, None], 0.0)
    echo[:, 0] = 1
    spectrum = torch.fft.rfft(x, n=size) * torch.fft.rfft(echo, n=size)
    # A microphone: a smooth curve of +-9 dB over eight points, and in a third of cases band limits.
    f = torch.linspace(0, 8_000, spectrum.shape[1], device=device)
    points = torch.randn(b, 1, 8, device=device) * torch.where(fair, 1.0, 3.5)[..., None]
    gain = 10 ** (F.interpolate(points, len(f), mode="linear", align_corners=True)[:, 0] / 20)
    limited = _some(b, 0.3, device) & ~fair
    low = torch.where(limited, _uniform(b, 60, 350, device)[:, None], 0.0)
    limited = _some(b, 0.3, device) & ~fair
    high = torch.where(limited, _uniform(b, 3_000, 7_000, device)[:, None], 8_000.0)
    spectrum *= gain * torch.sigmoid((f - low) / 25) * torch.sigmoid((high - f) / 100)
    x = torch.fft.irfft(spectrum, n=size)[:, :n]
    # Ratios are relative to the word, not to the silence around it.
    at = torch.arange(n, device=device)[None]
    inside = ((at >= start[:, None]) & (at < stop[:, None])).float()
    level = (x.square() * inside).sum(1, keepdim=True) / inside.sum(1, keepdim=True).clamp_min(1)
    level = level.sqrt().clamp_min(1e-5)
    # Other voices: two more windows, rotated to begin elsewhere.
    ratio = torch.where(_some(b, 0.25, device) & ~fair, _uniform(b, 0, 20, device)[:, None], 90.0)
    turned = (at + _whole(b, n, device)[:, None]) % n
    other = x.roll(1, 0) + x.roll(7, 0) * _some(b, 0.5, device)
    other = other.gather(1, turned)
    x = x + other * (level / _level(other) * 10 ** (-ratio / 20))
    ratio = torch.where(
        _some(b, 0.85, device) & ~fair,
        _uniform(b, *NOISE, device)[:, None],
        _uniform(b, 25, 60, device)[:, None],
    )
    x = x + noises.draw(b, n) * (level * 10 ** (-ratio / 20))
    # Recordings of a second have no context, not even noise.
    before, after = (_uniform(b, 500, 6_000, device)[:, None] for _ in range(2))
    kept = (at > start[:, None] - before) & (at < stop[:, None] + after)
    x = torch.where(kept | ~_some(b, 0.2, device), x, 0.0)
    x = x / x.abs().amax(1, keepdim=True).clamp_min(1e-6)
    most = torch.where(_some(b, 0.1, device) & ~fair, _uniform(b, 0.2, 0.8, device)[:, None], 1.0)
    x = torch.maximum(torch.minimum(x, most), -most)
    return x * 10 ** _uniform(b, -1.7, 0, device)[:, None]


def extents(
    x: torch.Tensor, start: torch.Tensor, stop: torch.Tensor, short: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Estimate where the word is, as the product does.

    In a third of the windows (b, n) it is where the word was cut, give or take 60 ms on either
    side. In the others, where words are short, it is a fixed time around the middle of the energy.
    """
    b, n = x.shape
    device = x.device
    loose = 960.0 if short else 1_900.0
    first, last = (edge + _uniform(b, -loose, loose, device) for edge in (start, stop))
    if not short:
        return first, last
    energy = x[:, : n // HOP * HOP].reshape(b, -1, HOP).square().mean(2)
    at = (torch.arange(energy.shape[1], device=device)[None] + 0.5) * HOP
    middle = centre = (start + stop) / 2
    for _ in range(3):
        near = energy * ((at - middle[:, None]).abs() <= 8_000)
        middle = (near * at).sum(1) / near.sum(1).clamp_min(1e-12)
    # Ignore the shift where neighbours would move it off the word.
    most = 0.25 * (stop - start) + 960
    middle = torch.maximum(torch.minimum(middle, centre + most), centre - most)
    middle = middle + 320 * torch.randn(b, device=device)
    half = _uniform(b, 3_800, 7_200, device)
    known = _some(b, 0.33, device)[:, 0]
    return torch.where(known, first, middle - half), torch.where(known, last, middle + half)


def hide(mel: torch.Tensor) -> torch.Tensor:
    """Cover up to six bands and up to eight frames of log-mel frames (b, bands, t)."""
    b, bands, t = mel.shape
    mean = mel.mean((1, 2), keepdim=True)
    for axis, size, most in ((1, bands, 6), (2, t, 8)):
        first = _whole(b, size - most, mel.device)[:, None]
        count = _whole(b, most + 1, mel.device)[:, None]
        at = torch.arange(size, device=mel.device)[None]
        covered = (at >= first) & (at < first + count)
        mel = torch.where(covered[:, :, None] if axis == 1 else covered[:, None], mean, mel)
    return mel


def _uniform(b: int, low: float, high: float, device: torch.device) -> torch.Tensor:
    return low + (high - low) * torch.rand(b, device=device)


def _whole(b: int, below: int, device: torch.device) -> torch.Tensor:
    return torch.randint(0, below, (b,), device=device)


def _some(b: int, share: float, device: torch.device) -> torch.Tensor:
    return torch.rand(b, 1, device=device) < share


def _level(x: torch.Tensor) -> torch.Tensor:
    return x.square().mean(1, keepdim=True).sqrt().clamp_min(1e-5)
