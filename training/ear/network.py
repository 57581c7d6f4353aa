"""The ear: log-mel frames in, a frame of 96 numbers every 40 ms out, and a vector of an extent.

Streaming: a frame sees 0.2 s from where it begins. Convolutions, batch normalisation and ReLU
alone, so that it can be folded and quantised.

    python training/ear/network.py

prints its size and cost.
"""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

WINDOW, STEP, FFT, FLOOR = 400, 160, 512, 1e-3
# Samples between two frames of the network, and frames by which it answers late.
HOP, DELAY = 640, 2
FRAME, VECTOR, WIDTH = 96, 192, 184
# Numbers a frame that are to be the speech embedding's own.
LIKE = 96
# Where the ear looks in an extent before it learns better, and how far around, as shares of it.
PLACES, REACH = (0.1, 0.3, 0.5, 0.7, 0.9), 0.07


class Mel(nn.Module):
    """Log-mel frames as `tapword.backbones.logmel.log_mel` has them; `weights` (257, bands)."""

    def __init__(self, weights: np.ndarray):
        super().__init__()
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)
        self.register_buffer("window", torch.tensor(window, dtype=torch.float32))
        self.register_buffer("weights", torch.tensor(weights, dtype=torch.float32))

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        """(b, n) -> (b, bands, t)."""
        frames = audio.unfold(1, WINDOW, STEP) * self.window
        return torch.log(torch.fft.rfft(frames, n=FFT).abs() @ self.weights + FLOOR).mT


class Conv(nn.Module):
    """Convolution, batch normalisation, ReLU; over time it sees `ahead` steps of the future."""

    def __init__(
        self,
        i: int,
        o: int,
        k: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        ahead: int = 0,
        groups: int = 1,
        relu: bool = True,
    ):
        super().__init__()
        self.past, self.ahead, self.band, self.relu = k[1] - 1 - ahead, ahead, k[0] // 2, relu
        self.conv = nn.Conv2d(i, o, k, stride, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(o)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, i, bands, t) -> (b, o, bands', t')."""
        x = F.pad(x, (self.past, self.ahead, self.band, self.band))
        x = self.norm(self.conv(x))
        return F.relu(x) if self.relu else x

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Do the same for (b, bands, t, i) by products and sums, which compile to fast kernels."""
        weight = self.conv.weight.to(x.dtype)
        (high, wide), (down, right) = self.conv.kernel_size, self.conv.stride
        if high == wide == 1:
            x = F.linear(x, weight[:, :, 0, 0])
        else:
            x = F.pad(x, (0, 0, self.past, self.ahead, self.band, self.band))
            h, t = (x.shape[1] - high) // down * down + 1, (x.shape[2] - wide) // right * right + 1
            taps = [
                x[:, a : a + h : down, b : b + t : right] for a in range(high) for b in range(wide)
            ]
            weight = weight.flatten(1)
            if self.conv.groups == 1:
                x = F.linear(torch.cat(taps, -1), weight)
            else:
                x = sum(tap * weight[:, k] for k, tap in enumerate(taps))
        x = self.norm(x.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
        return F.relu(x) if self.relu else x


class Inverted(nn.Module):
    """Widen, look around each channel, narrow; the input is added where shapes allow."""

    def __init__(
        self,
        i: int,
        o: int,
        wide: int,
        k: tuple[int, int],
        stride: tuple[int, int] = (1, 1),
        ahead: int = 0,
    ):
        super().__init__()
        self.same = i == o and stride == (1, 1)
        self.body = nn.Sequential(
            Conv(i, wide, (1, 1)),
            Conv(wide, wide, k, stride, ahead, groups=wide),
            Conv(wide, o, (1, 1), relu=False),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(b, i, bands, t) -> (b, o, bands', t')."""
        return x + self.body(x) if self.same else self.body(x)

    def rows(self, x: torch.Tensor) -> torch.Tensor:
        """Do the same for (b, bands, t, i)."""
        y = x
        for part in self.body:
            y = part.rows(y)
        return x + y if self.same else y


class Ear(nn.Module):
    """Frames (b, t, 96) from log-mel frames (b, 40, 4 t), and the numbers (b, 672) of an extent."""

    def __init__(self) -> None:
        super().__init__()
        self.bands = nn.Sequential(
            Conv(1, 24, (5, 5), (2, 2), ahead=2),
            Inverted(24, 24, 48, (3, 3), ahead=1),
            Inverted(24, 32, 72, (3, 3), (2, 1), ahead=1),
            Inverted(32, 40, 96, (3, 3), (1, 2), ahead=1),
            Inverted(40, 40, 120, (3, 3)),
            Inverted(40, 64, 160, (3, 3), (2, 1)),
            Inverted(64, 64, 192, (3, 3)),
        )
        self.flat = Conv(64 * 5, WIDTH, (1, 1))
        self.time = nn.Sequential(
            *[Inverted(WIDTH, WIDTH, 2 * WIDTH, (1, 7), ahead=a) for a in (1, 1, 1, 0, 0)]
        )
        self.out = nn.Conv2d(WIDTH, FRAME, 1)
        self.like = nn.Conv2d(WIDTH, LIKE, 1)
        # Where in an extent to look: by what is heard there, and by the place.
        self.look = nn.Conv2d(WIDTH, len(PLACES), 1)
        self.place = nn.Parameter(torch.tensor(PLACES))
        self.reach = nn.Parameter(torch.full((len(PLACES),), float(np.log(REACH))))
        self.head = nn.Linear(FRAME * (2 + len(PLACES)), VECTOR)
        nn.init.zeros_(self.look.weight)
        nn.init.zeros_(self.look.bias)

    def hidden(self, mel: torch.Tensor) -> torch.Tensor:
        """Give what the frames are read off: (b, t, 184)."""
        x = self.bands((mel[:, None] + 2.0) / 3.0)
        return self.time(self.flat(x.flatten(1, 2)[:, :, None]))[:, :, 0].transpose(1, 2)

    def rows(self, mel: torch.Tensor) -> torch.Tensor:
        """Do the same by products and sums."""
        x = ((mel + 2.0) / 3.0)[..., None]
        for part in self.bands:
            x = part.rows(x)
        x = self.flat.rows(x.permute(0, 2, 3, 1).flatten(2)[:, None])
        for part in self.time:
            x = part.rows(x)
        return x[:, 0]

    def frames(self, hidden: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Frames, those like the speech embedding, both (b, t, 96), and where to look (b, t, 5)."""
        frames, like, look = (
            F.linear(hidden, part.weight[:, :, 0, 0], part.bias)
            for part in (self.out, self.like, self.look)
        )
        return frames, like, look

    def pool(
        self, frames: torch.Tensor, look: torch.Tensor, start: torch.Tensor, stop: torch.Tensor
    ) -> torch.Tensor:
        """Mean, deviation and five looks at an extent, (b, 7 d)."""
        t = frames.shape[1]
        first, last = (start / HOP + DELAY)[:, None], (stop / HOP + DELAY)[:, None]
        at = torch.arange(t, device=frames.device)[None]
        # A frame that the extent covers in part counts in part.
        inside = (torch.minimum(last, at + 1.0) - torch.maximum(first, at.float())).clamp(0, 1)
        inside = inside / inside.sum(1, keepdim=True).clamp_min(1e-3)
        mean = torch.einsum("bt,btd->bd", inside, frames)
        square = torch.einsum("bt,btd->bd", inside, (frames - mean[:, None]) ** 2)
        share = (at + 0.5 - first) / (last - first)
        far = (share[..., None] - self.place) / self.reach.exp()
        weights = torch.softmax(look - 0.5 * far.square(), dim=1)
        looks = torch.einsum("btk,btd->bkd", weights, frames)
        return torch.cat([mean, (square + 1e-4).sqrt(), looks.flatten(1)], 1)


def multiply_adds(net: Ear) -> float:
    """Count multiply-adds a second of speech, extents left out."""
    counts = []

    def count(module: nn.Conv2d, inputs: tuple, output: torch.Tensor) -> None:
        counts.append(output[0].numel() * module.weight[0].numel())

    hooks = [m.register_forward_hook(count) for m in net.modules() if isinstance(m, nn.Conv2d)]
    net.eval().hidden(torch.zeros(1, 40, 400))
    for hook in hooks:
        hook.remove()
    outputs = sum(part.weight.numel() for part in (net.out, net.like, net.look))
    return sum(counts) / 4 + 25 * outputs


if __name__ == "__main__":
    net = Ear()
    print(sum(p.numel() for p in net.parameters()), "parameters")
    print(multiply_adds(net) / 1e6, "million multiply-adds a second")
    mel = torch.randn(1, 40, 400)
    other = mel.clone()
    other[..., 200:] = 0
    before, after = net.hidden(mel), net.hidden(other)
    changed = (before - after).abs().amax((0, 2)) > 0
    print("a change at 2.0 s is seen from", changed.nonzero()[0].item() * 0.04, "s on")
    net.train()
    print("rows differ by", float((net.rows(mel) - net.hidden(mel)).abs().max().detach()))
