"""Write a checkpoint in half the size.

    python training/ear/keep.py EAR.safetensors KEPT.safetensors

Matrices are kept in 16 bits; vectors, the statistics of normalisations among them, in 32.
"""

import sys

from safetensors.torch import load_file, save_file


def main(source: str, target: str) -> None:
    """Write the file."""
    kept = {k: v.half() if v.ndim >= 2 else v for k, v in load_file(source).items()}
    save_file(kept, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
