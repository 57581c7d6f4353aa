"""Subjects of `docs/results/`, and the commands that measure them.

Every command names its parts or a size, so a new default only changes the numbers of that size.
In a command, {english}, {arabic} and {phrases} are folders of data sets, and {negatives} are
recordings of running speech without the words.
"""

from typing import NamedTuple

# The paper's learners by the paper's rules, and ours: repairs of these, and two new ones.
PAPER = (
    "slda:variant=reference sqda:variant=reference snb:variant=reference cbcl:variant=reference "
    "ncm sovr perceptron finetune icarl"
)
OURS = "slda sqda snb cbcl icarl:unit_length=true,lr=1 ridge cosine"
ENGLISH = "tapword evaluate --dataset speech_commands --data {english}"
ARABIC = "tapword evaluate --dataset mswc:language=ar --data {arabic}"
COUNTS = "--shots 1 --shots 5 --shots 10 --shots 20"
# The backbone on which learners and poolings are compared.
ON = "--backbone speech_embedding"
REPRODUCED = "--data {english} --backbones speech_embedding,wakehubert_tiny,moonshine_tiny"
# Google's network with the parts of the previous default.
EMBEDDING = (
    "--backbone speech_embedding:layers=b64+emb+emb "
    "--pooling blocks:poolings=tap:R=2+tap:R=2+middle "
    "--learner cosine:prior=shipped,covariance=full"
)
NOISE = "--noise " + " ".join(
    f"{{english}}/_background_noise_/{name}.wav"
    for name in ("exercise_bike", "running_tap", "pink_noise")
)
FORMS = ("full", "block", "block,block=32", "lowrank,rank=16", "lowrank,rank=64", "diagonal")


class Subject(NamedTuple):
    """A page: its title, and its runs by name, one command each."""

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
            "english_paper": f"{ENGLISH} {ON} {BOTH} {options('learner', PAPER)}",
            "english_ours": f"{ENGLISH} {ON} {BOTH} {options('learner', OURS)}",
            "mixed": f"{ENGLISH} {ON} {BOTH} {options('learner', 'slda ncm finetune')} "
            "--order iid --upper-bound",
            "arabic_paper": f"{ARABIC} {ON} {BOTH} {options('learner', PAPER)}",
            "arabic_ours": f"{ARABIC} {ON} {BOTH} {options('learner', OURS)}",
        },
    ),
    "few_samples": Subject(
        "Few samples per word",
        {
            "english": f"{ENGLISH} --size small {COUNTS} --shots 100",
            "english_paper": f"{ENGLISH} {ON} --pooling tap {options('learner', PAPER)} {COUNTS} "
            "--shots 100",
            "english_ours": f"{ENGLISH} {ON} --pooling tap {options('learner', OURS)} "
            f"--learner slda:prior=diagonal {COUNTS} --shots 100",
            "arabic": f"{ARABIC} --size small {COUNTS} --shots 30",
            "arabic_paper": f"{ARABIC} {ON} --pooling tap {options('learner', PAPER)} {COUNTS} "
            "--shots 30",
            "arabic_ours": f"{ARABIC} {ON} --pooling tap {options('learner', OURS)} "
            f"--learner slda:prior=diagonal {COUNTS} --shots 30",
        },
    ),
    "sizes": Subject(
        "Sizes and memory",
        {
            "sizes": f"{ENGLISH} {options('size', 'small medium large')} {COUNTS} --shots 100",
            "embedding": f"{ENGLISH} {EMBEDDING} {COUNTS} --shots 100",
            "arabic": f"{ARABIC} --size small {COUNTS} --shots 30",
            "embedding_arabic": f"{ARABIC} {EMBEDDING} {COUNTS} --shots 30",
            "memory": f"{ENGLISH} --no-augment --backbone ear_s --pooling attentive "
            + " ".join(f"--learner cosine:prior=shipped,covariance={form}" for form in FORMS)
            + " --draws 5 --shots 1 --shots 5 --shots 20 --shots 100",
        },
    ),
    "unknown_words": Subject(
        "Unknown words",
        {
            "english": f"{ENGLISH} --size small --open-set --voice others --shots 5",
            "english_embedding": f"{ENGLISH} {EMBEDDING} --open-set --voice others --shots 5",
            "arabic": f"{ARABIC} --size small --open-set --voice both --known 3 --shots 3",
            "arabic_embedding": f"{ARABIC} {EMBEDDING} --open-set --voice both --known 3 --shots 3",
        },
    ),
    "running_speech": Subject(
        "Running speech",
        {
            "small": "python benchmarks/thresholds.py {english} {arabic} --size small "
            "--negatives {negatives}",
            "medium": "python benchmarks/thresholds.py {english} {arabic} --size medium "
            "--negatives {negatives}",
            "embedding": f"python benchmarks/thresholds.py {{english}} {{arabic}} {EMBEDDING} "
            "--negatives {negatives}",
            "streams": f"python benchmarks/streams.py {{english}} --size small {NOISE} "
            "--negatives {negatives}",
            "use": "python benchmarks/use.py {english} {arabic} --negatives {negatives}",
            "phrases": f"python benchmarks/wake_words.py {{phrases}} --size small {NOISE} "
            "--negatives {negatives}",
        },
    ),
    "typed": Subject(
        "Typed words",
        {
            name: "python benchmarks/typed.py {phrases} {english} {arabic} --size small "
            f"--voice kokoro {options}"
            for name, options in {
                "phrases": "--sets phrases",
                "english": "--sets english",
                "arabic": "--sets arabic",
                "alarms": "--negatives {negatives}",
            }.items()
        }
        | {
            "mixed_up": "python benchmarks/mixed_up.py {english} --size small --voice kokoro",
        },
    ),
    "paper": Subject(
        "The paper's tables",
        {
            **{
                name: f"tapword reproduce {name} {REPRODUCED}"
                for name in ("table1", "table2", "table3", "table4", "table6")
            },
            "table7": "tapword reproduce table7 --data {english} --backbones speech_embedding",
            "figure3": "tapword reproduce figure3 --data {english} --mswc {arabic} "
            "--n-words 10,25,40 --backbones speech_embedding",
            "overhead": f"tapword reproduce overhead {REPRODUCED}",
            "wasserstein": f"tapword reproduce wasserstein {REPRODUCED}",
        },
    ),
}
