"""Noise of many kinds, made on the GPU: a bank from which training takes windows.

Hiss and hum of any spectrum, narrow bands, swells and gaps, water, whistles, animals, machines,
knocks and dishes, and babble of several people from the training recordings. No other recordings
are used.
"""

import math

import torch
from torch.nn import functional as F

RATE, LENGTH, LEVEL = 16_000, 64_000, 2_000.0
# Frequencies of the spectrum of LENGTH samples, and their positions on a perceptual scale.
_BINS = LENGTH // 2 + 1
# Kinds and their percentage of rows.
KINDS = {"hiss": 30, "water": 14, "tones": 16, "knocks": 14, "machine": 10, "babble": 16}


class Noises:
    """A bank (rows, LENGTH) of noises as int16, of equal level; `refresh` replaces some."""

    def __init__(self, device: str, rows: int = 8_192, chunk: int = 256):
        self.device, self.chunk = device, chunk
        self.bank = torch.zeros(rows, LENGTH, dtype=torch.int16, device=device)
        self.next = 0

    def fill(self, speech: torch.Tensor) -> None:
        """Fill the bank; `speech` is a long recording of people (int16)."""
        for _ in range(len(self.bank) // self.chunk):
            self.refresh(speech)

    @torch.no_grad()
    def refresh(self, speech: torch.Tensor) -> None:
        """Replace the next rows."""
        made = make(self.chunk, speech)
        self.bank[self.next : self.next + self.chunk] = made[: len(self.bank) - self.next]
        self.next = (self.next + self.chunk) % len(self.bank)

    def draw(self, b: int, n: int) -> torch.Tensor:
        """Windows (b, n) of about level one; quiet in gaps. Long ones run to and fro."""
        row = torch.randint(len(self.bank), (b, 1), device=self.device)
        some = min(n, LENGTH)
        first = torch.randint(LENGTH - some + 1, (b, 1), device=self.device)
        at = torch.arange(n, device=self.device)
        at = first + torch.where(at // some % 2 == 1, some - 1 - at % some, at % some)[None]
        x = self.bank[row, at].float() / LEVEL
        level = x.square().mean(1, keepdim=True).sqrt()
        return x / level.clamp_min(0.3)


def make(b: int, speech: torch.Tensor) -> torch.Tensor:
    """Rows of noise (b, LENGTH), int16."""
    makers = {
        "hiss": hiss,
        "water": water,
        "tones": tones,
        "knocks": knocks,
        "machine": machine,
        "babble": lambda count, device: babble(count, speech),
    }
    total = sum(KINDS.values())
    counts = {name: max(1, round(b * share / total)) for name, share in KINDS.items()}
    counts["hiss"] += b - sum(counts.values())
    x = torch.cat([_even(makers[name](count, speech.device)) for name, count in counts.items()])
    # Often two noises at once.
    other = x[torch.randperm(b, device=x.device)]
    share = torch.where(_some(b, 0.4, x.device), 10 ** (_uniform(b, -20, 0, x.device) / 20), 0.0)
    x = _even(x + share * other)
    return (x * LEVEL).clamp(-32_000, 32_000).to(torch.int16)


def hiss(b: int, device: torch.device) -> torch.Tensor:
    """Noise of any spectrum, steady, swelling, or with gaps."""
    x = _coloured(b, device)
    return x * _course(b, device)


def water(b: int, device: torch.device) -> torch.Tensor:
    """Eight bands with quick envelopes, and drops on some of them."""
    x = torch.zeros(b, LENGTH, device=device)
    tilt = _uniform(b, -6, 3, device)
    for band in range(8):
        middle = 10 ** _uniform(b, 2.2, 3.88, device)
        wide = middle * _uniform(b, 0.08, 0.5, device)
        gain = 10 ** ((tilt * torch.log2(middle / 1_000) + _uniform(b, -12, 6, device)) / 20)
        part = _even(_noise(torch.exp(-0.5 * ((_frequencies(device) - middle) / wide) ** 2)))
        swing = _uniform(b, 2, 9, device) * (0.3 if band < 2 else 1.0)
        x += part * gain * 10 ** (swing * _wander(10 ** _uniform(b, 0.3, 1.9, device)) / 20)
    return x + _even(_struck(b, device, (10, 120), (0.004, 0.04))) * _chance(b, 0.4, device)


def tones(b: int, device: torch.device) -> torch.Tensor:
    """Whistles, horns, miaows, beeps, hum: harmonics of a tone that glides."""
    base = 10 ** _uniform(b, 1.7, 3.3, device)
    glide = _uniform(b, 0, 0.9, device) * _chance(b, 0.7, device)
    course = _wander(10 ** _uniform(b, -0.5, 0.8, device))
    pitch = base * 2 ** (glide * course)
    turn = torch.cumsum(pitch / RATE, 1) % 1.0
    x = torch.zeros(b, LENGTH, device=device)
    slope = _uniform(b, 0, 1.8, device)
    formant = 10 ** _uniform(b, 2.5, 3.6, device) * 2 ** (
        0.6 * _wander(10 ** _uniform(b, -0.3, 0.7, device))
    )
    shaped = _chance(b, 0.6, device)
    for k in range(1, 17):
        height = k * pitch
        near = torch.exp(-0.5 * (torch.log2(height / formant) / 0.45) ** 2)
        gain = torch.where(shaped > 0, 0.03 + near, 1.0) * k**-slope
        gain = gain * 10 ** (_uniform(b, -8, 4, device) / 20) * (height < 7_700)
        # Pure tones have no second harmonic.
        gain = gain * (torch.ones_like(base) if k == 1 else _chance(b, 0.85, device))
        x += gain * torch.sin(2 * math.pi * (k * turn + torch.rand(b, 1, device=device)))
    x = _even(x * _course(b, device, gaps=0.6))
    return x + _coloured(b, device) * 10 ** (_uniform(b, -40, -8, device) / 20)


def knocks(b: int, device: torch.device) -> torch.Tensor:
    """Knocks, clicks, dishes: struck objects that ring."""
    x = _even(_struck(b, device, (0.8, 25), (0.003, 0.4)))
    return x + _coloured(b, device) * 10 ** (_uniform(b, -45, -8, device) / 20)


def machine(b: int, device: torch.device) -> torch.Tensor:
    """Motors and wheels: strokes at a slowly varying pace, and a hiss that follows them."""
    pace = 10 ** _uniform(b, 0.7, 2.1, device)
    turn = torch.cumsum(pace * (1 + 0.15 * _wander(_uniform(b, 0.3, 6, device))) / RATE, 1)
    stroke = F.pad(turn.floor().diff(dim=1), (1, 0)).clamp(0, 1)
    stroke = stroke * torch.exp(0.4 * torch.randn(b, LENGTH, device=device))
    x = _even(_ring(stroke, _uniform(b, 0.003, 0.08, device), 10))
    follow = 0.5 + 0.5 * torch.sin(2 * math.pi * turn)
    rough = _coloured(b, device) * (1 - _uniform(b, 0, 1, device) * follow)
    return (x + rough * 10 ** (_uniform(b, -15, 10, device) / 20)) * _course(b, device, gaps=0.1)


def babble(b: int, speech: torch.Tensor) -> torch.Tensor:
    """Two to eight people at once, some of them in the next room."""
    x = torch.zeros(b, LENGTH, device=speech.device)
    for person in range(8):
        first = torch.randint(len(speech) - LENGTH, (b, 1), device=speech.device)
        at = first + torch.arange(LENGTH, device=speech.device)[None]
        here = 1.0 if person < 2 else _chance(b, 0.5, speech.device)
        x += speech[at].float() / 32_768 * here * 10 ** (_uniform(b, -10, 0, speech.device) / 20)
    spectrum = torch.fft.rfft(x) * 10 ** (_curve(b, 8, 4.0, x.device) / 20)
    return torch.fft.irfft(spectrum, n=LENGTH)


def _struck(b: int, device: torch.device, often: tuple, last: tuple) -> torch.Tensor:
    """Random strokes at a rate per second, each ringing for some seconds."""
    rate = 10 ** _uniform(b, math.log10(often[0]), math.log10(often[1]), device)
    hit = (torch.rand(b, LENGTH, device=device) < rate / RATE).float()
    # At least one stroke in every row.
    hit.scatter_(1, torch.randint(LENGTH, (b, 1), device=device), 1.0)
    hit = hit * torch.exp(torch.randn(b, LENGTH, device=device))
    return _ring(hit, 10 ** _uniform(b, math.log10(last[0]), math.log10(last[1]), device), 14)


def _ring(hit: torch.Tensor, last: torch.Tensor, modes: int) -> torch.Tensor:
    """Let strokes (b, n) ring at some frequencies, and click."""
    b, device = len(hit), hit.device
    n = 16_000
    at = torch.arange(n, device=device)[None] / RATE
    body = torch.randn(b, n, device=device) * torch.exp(-at / (0.15 * last)) * 0.6
    for _ in range(modes):
        height = 10 ** _uniform(b, 1.9, 3.87, device)
        fades = torch.exp(-at / (last * 2 ** _uniform(b, -1.5, 1, device)))
        gain = torch.exp(0.8 * torch.randn(b, 1, device=device)) * _chance(b, 0.6, device)
        body += gain * fades * torch.sin(2 * math.pi * height * at)
    spectrum = torch.fft.rfft(hit, n=LENGTH + n) * torch.fft.rfft(body, n=LENGTH + n)
    return torch.fft.irfft(spectrum, n=LENGTH + n)[:, :LENGTH]


def _coloured(b: int, device: torch.device) -> torch.Tensor:
    """Noise with a tilted spectrum that varies by +-15 dB, and may have peaks and limits."""
    f = _frequencies(device)
    octaves = torch.log2((f + 30) / 1_000)
    curve = -_uniform(b, -2, 9, device) * octaves
    curve = curve + _curve(b, 14, 1.0, device) * _uniform(b, 0, 8, device)
    for _ in range(3):
        middle = 10 ** _uniform(b, 1.8, 3.88, device)
        wide = 20 + middle * _uniform(b, 0.01, 0.15, device)
        peak = torch.exp(-0.5 * ((f - middle) / wide) ** 2)
        curve = curve + peak * _uniform(b, 5, 40, device) * _chance(b, 0.2, device)
    low = _uniform(b, 50, 2_500, device) * _chance(b, 0.2, device)
    high = torch.where(_chance(b, 0.2, device) > 0, 10 ** _uniform(b, 2.6, 3.8, device), 8_000.0)
    ends = torch.sigmoid((f - low) / 40) * torch.sigmoid((high - f) / 80)
    return _even(_noise(10 ** (curve.clamp(-60, 60) / 20) * ends))


def _noise(gain: torch.Tensor) -> torch.Tensor:
    """Noise (b, LENGTH) of a given spectrum (b, bins)."""
    random = torch.view_as_complex(torch.randn(*gain.shape, 2, device=gain.device))
    return torch.fft.irfft(random * gain, n=LENGTH)


def _curve(b: int, points: int, deviation: float, device: torch.device) -> torch.Tensor:
    """Curves (b, bins) in dB over frequency, fine at low and coarse at high frequencies."""
    heights = torch.randn(b, points, device=device) * deviation
    scale = torch.log1p(_frequencies(device) / 700)[0]
    at = scale / scale[-1] * (points - 1.001)
    low = at.long()
    part = at - low
    return heights[:, low] * (1 - part) + heights[:, low + 1] * part


def _course(b: int, device: torch.device, gaps: float = 0.25) -> torch.Tensor:
    """Envelopes: steady, swelling slowly or quickly, or with gaps."""
    rate = 10 ** _uniform(b, -0.5, 1.5, device)
    swing = _uniform(b, 0, 14, device) * _chance(b, 0.6, device)
    swell = 10 ** (swing * _wander(rate) / 20)
    there = _wander(10 ** _uniform(b, 0, 1, device)) + _uniform(b, -0.7, 0.7, device)
    gate = torch.sigmoid(there * 10 ** _uniform(b, 0.5, 1.7, device))
    return swell * torch.where(_chance(b, gaps, device) > 0, gate, 1.0)


def _wander(rate: torch.Tensor) -> torch.Tensor:
    """Smooth random curves (b, LENGTH) around zero, with `turns` per second (b, 1)."""
    points = int(LENGTH / RATE * 80) + 3
    values = torch.randn(len(rate), points, device=rate.device)
    at = torch.arange(LENGTH, device=rate.device)[None] / RATE * rate.clamp(0.05, 80)
    at = at + torch.rand_like(rate)
    low = at.long().clamp(0, points - 2)
    part = at - low
    part = part * part * (3 - 2 * part)
    return values.gather(1, low) * (1 - part) + values.gather(1, low + 1) * part


def _frequencies(device: torch.device) -> torch.Tensor:
    return torch.linspace(0, RATE / 2, _BINS, device=device)[None]


def _even(x: torch.Tensor) -> torch.Tensor:
    return x / x.square().mean(1, keepdim=True).sqrt().clamp_min(1e-6)


def _uniform(b: int, low: float, high: float, device: torch.device) -> torch.Tensor:
    return low + (high - low) * torch.rand(b, 1, device=device)


def _some(b: int, share: float, device: torch.device) -> torch.Tensor:
    return torch.rand(b, 1, device=device) < share


def _chance(b: int, share: float, device: torch.device) -> torch.Tensor:
    return _some(b, share, device).float()
