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
    # Until run 7, checkpoints also had the centres and widths of the attention heads.
    names = a.keys() & b.keys()
    if (a.keys() ^ b.keys()) - {"place", "reach"}:
        raise ValueError("the two networks are not of one kind")
    mean = {name: a[name].float().lerp(b[name].float(), float(share)) for name in names}
    save_file({name: value.contiguous() for name, value in mean.items()}, target)


if __name__ == "__main__":
    main(*sys.argv[1:])
