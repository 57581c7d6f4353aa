"""Draw icon.png and logo.png: sound bars on a rounded background, as in the studio's icon.

python contrib/home_assistant_addon/icon.py
"""

import struct
import zlib
from pathlib import Path

import numpy as np

# On a square of 64: the x position of each bar, and its half height.
BARS = {13: 0, 21: 7, 29: 17, 37: 10, 45: 14, 52: 4}
GROUND, INK = (11, 107, 93), (255, 255, 255)


def inside(distance: np.ndarray) -> np.ndarray:
    """Return the coverage of pixels, from their distance (h, w) to the edge of a shape."""
    return np.clip(0.5 - distance, 0, 1)[..., None]


def draw(width: int, height: int) -> np.ndarray:
    """Draw a picture (height, width, 4) uint8, with the square of 64 in the middle."""
    scale = min(width, height) / 64
    y, x = np.mgrid[:height, :width] + 0.5
    x, y = (x - width / 2) / scale + 32, (y - height / 2) / scale + 32
    half_width, half_height, radius = width / scale / 2, height / scale / 2, 15
    corner = np.hypot(
        np.maximum(abs(x - 32) - half_width + radius, 0),
        np.maximum(abs(y - 32) - half_height + radius, 0),
    )
    ground = inside((corner - radius) * scale)
    ink = np.zeros_like(ground)
    for at, half_bar in BARS.items():
        bar = np.hypot(x - at, np.maximum(abs(y - 32) - half_bar, 0))
        ink = np.maximum(ink, inside((bar - 2.5) * scale))
    colour = np.array(GROUND) * (1 - ink) + np.array(INK) * ink
    return np.concatenate([colour, 255 * ground], axis=2).round().astype(np.uint8)


def png(picture: np.ndarray) -> bytes:
    """Bytes of a PNG file of a picture (h, w, 4) uint8."""
    height, width, _ = picture.shape
    rows = b"".join(b"\0" + row.tobytes() for row in picture)
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


if __name__ == "__main__":
    # The sizes that Home Assistant recommends.
    for name, size in (("icon", (128, 128)), ("logo", (250, 100))):
        Path(__file__).with_name(f"{name}.png").write_bytes(png(draw(*size)))
