"""Average the weights of two networks, one of which was trained from the other.

    python training/ear/average.py FIRST.safetensors SECOND.safetensors MEAN.safetensors [SHARE]

SHARE is the weight of the second, 0.5 by default. Run 3 was better than run 2 in noise and worse
without; their mean is better than either at both.
"""

import sys

from safetensors.torch import load_file, save_file


def main(first: str, second: str, target: str, share: str = "0.5") -> None:
    """Write the mean of all weights and statistics of the normalisations."""
    a, b = load_file(first), load_file(second)
    if a.keys() != b.keys():
        raise ValueError("the two networks are not of one kind")
    save_file({name: a[name].lerp(b[name], float(share)).contiguous() for name in a}, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
