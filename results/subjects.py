"""The list of everything that `docs/results/` shows, and the commands that measure it.

In a command, {english} and {arabic} stand for folders of data sets.
"""

from typing import NamedTuple

# The paper's learners by the paper's rules, and ours: repairs of these, and two of our own.
PAPER = (
    "slda:variant=reference sqda:variant=reference snb:variant=reference cbcl:variant=reference "
    "ncm sovr perceptron finetune icarl"
)
OURS = "slda sqda snb cbcl icarl:unit_length=true,lr=1 ridge cosine"
ENGLISH = "tapword evaluate --dataset speech_commands --data {english}"
ARABIC = "tapword evaluate --dataset mswc:language=ar --data {arabic}"
COUNTS = "--shots 1 --shots 5 --shots 10 --shots 20"
FORMS = ("full", "block", "block,block=32", "lowrank,rank=16", "lowrank,rank=64", "diagonal")


class Subject(NamedTuple):
    """A page: its title, and its runs by their names, a command each."""

    title: str
    runs: dict[str, str]


def options(name: str, values: str) -> str:
    """Repeat an option for each of several values."""
    return " ".join(f"--{name} {value}" for value in values.split())


BOTH = options("pooling", "avg tap")
SUBJECTS = {
    "learners": Subject(
        "Learners",
        {
            "english_paper": f"{ENGLISH} {BOTH} {options('learner', PAPER)}",
            "english_ours": f"{ENGLISH} {BOTH} {options('learner', OURS)}",
            "mixed": f"{ENGLISH} {BOTH} {options('learner', 'slda ncm finetune')} "
            "--order iid --upper-bound",
            "arabic_paper": f"{ARABIC} {BOTH} {options('learner', PAPER)}",
            "arabic_ours": f"{ARABIC} {BOTH} {options('learner', OURS)}",
        },
    ),
    "few_samples": Subject(
        "Few samples a word",
        {
            "english": f"{ENGLISH} --size small {COUNTS} --shots 100",
            "english_paper": f"{ENGLISH} --pooling tap {options('learner', PAPER)} {COUNTS} "
            "--shots 100",
            "english_ours": f"{ENGLISH} --pooling tap {options('learner', OURS)} "
            f"--learner slda:prior=diagonal {COUNTS} --shots 100",
            "arabic": f"{ARABIC} --size small {COUNTS} --shots 30",
            "arabic_paper": f"{ARABIC} --pooling tap {options('learner', PAPER)} {COUNTS} "
            "--shots 30",
            "arabic_ours": f"{ARABIC} --pooling tap {options('learner', OURS)} "
            f"--learner slda:prior=diagonal {COUNTS} --shots 30",
        },
    ),
    "sizes": Subject(
        "Sizes, our own ear, and memory",
        {
            "sizes": f"{ENGLISH} {options('size', 'small medium large')} {COUNTS} --shots 100",
            "ear": f"{ENGLISH} --backbone tapword_ear {COUNTS} --shots 100",
            "ear_arabic": f"{ARABIC} --backbone tapword_ear {COUNTS} --shots 30",
            "memory": f"{ENGLISH} --no-augment --backbone speech_embedding:layers=b64+emb+emb "
            "--pooling blocks:poolings=tap:R=2+tap:R=2+middle "
            + " ".join(f"--learner cosine:prior=shipped,covariance={form}" for form in FORMS)
            + " --draws 5 --shots 1 --shots 5 --shots 20 --shots 100",
        },
    ),
    "unknown_words": Subject(
        "Words that were never taught",
        {
            "english": f"{ENGLISH} --size small --open-set --voice others --shots 5",
            "english_ear": f"{ENGLISH} --backbone tapword_ear --open-set --voice others --shots 5",
            "arabic": f"{ARABIC} --size small --open-set --voice both --known 3 --shots 3",
            "arabic_ear": f"{ARABIC} --backbone tapword_ear --open-set --voice both --known 3 "
            "--shots 3",
        },
    ),
}
