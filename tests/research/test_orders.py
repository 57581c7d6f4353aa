import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from tapword.errors import InputError
from tapword.research.orders import make

WORDS = [f"word{i % 7}" for i in range(60)]


def class_iid(words, seed=0, classes_per_task=1):
    return make("class-iid", words, seed, classes_per_task=classes_per_task)


def few_shot(words, shots, seed=0, classes_per_task=1):
    return make("few-shot", words, seed, shots, classes_per_task)


@pytest.mark.parametrize("classes_per_task", [1, 3, 7, 100])
@pytest.mark.parametrize("seed", [0, 1, 2**40])
def test_class_iid_gives_every_index_once_class_by_class(classes_per_task, seed):
    tasks = class_iid(WORDS, seed, classes_per_task)
    assert sorted(np.concatenate([task.indices for task in tasks])) == list(range(60))
    assert sorted(word for task in tasks for word in task.words) == sorted(set(WORDS))
    assert all(len(task.words) == min(classes_per_task, 7) for task in tasks[:-1])
    for task in tasks:
        assert task.indices.dtype == np.int64
        assert {WORDS[index] for index in task.indices} == set(task.words)


def test_a_seed_fixes_the_order_of_classes_and_samples():
    def flat(seed):
        return np.concatenate([task.indices for task in class_iid(WORDS, seed)]).tolist()

    assert flat(3) == flat(3)
    assert len({tuple(flat(seed)) for seed in range(5)}) == 5
    assert len({tuple(t.words for t in class_iid(WORDS, seed)) for seed in range(5)}) > 1
    (task,) = [task for task in class_iid(WORDS, 0) if task.words == ("word0",)]
    assert task.indices.tolist() != sorted(task.indices)


def test_the_order_does_not_depend_on_hash_randomisation():
    code = (
        "from tapword.research.orders import make\n"
        "words = [f'word{i % 7}' for i in range(60)]\n"
        "print([t.indices.tolist() for t in make('few-shot', words, seed=2, shots=3)])"
    )
    wanted = str([task.indices.tolist() for task in few_shot(WORDS, 3, seed=2)])
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == wanted


def test_words_of_one_task_are_mixed():
    (task,) = class_iid(WORDS, classes_per_task=7)
    words = [WORDS[index] for index in task.indices]
    assert sum(a != b for a, b in itertools.pairwise(words)) > 30


def test_iid_is_one_shuffled_task():
    (task,) = make("iid", WORDS, seed=4)
    assert task.words == tuple(sorted(set(WORDS)))
    assert sorted(task.indices) == list(range(60)) and task.indices.tolist() != list(range(60))
    assert make("iid", WORDS, seed=4)[0].indices.tolist() == task.indices.tolist()
    assert make("iid", WORDS, seed=5)[0].indices.tolist() != task.indices.tolist()


@pytest.mark.parametrize("classes_per_task", [1, 2])
def test_few_shot_draws_are_nested_and_end_in_class_iid(classes_per_task):
    draws = [few_shot(WORDS, shots, 1, classes_per_task) for shots in range(1, 9)]
    for shots, (small, large) in enumerate(itertools.pairwise(draws), start=1):
        for a, b in zip(small, large, strict=True):
            assert a.words == b.words and len(a.indices) == shots * len(a.words)
            assert set(a.indices) < set(b.indices)
            if classes_per_task == 1:
                assert a.indices.tolist() == b.indices[:shots].tolist()
    whole = class_iid(WORDS, 1, classes_per_task)
    assert [task.words for task in whole] == [task.words for task in draws[-1]]
    for a, b in zip(draws[-1], whole, strict=True):
        assert set(a.indices) <= set(b.indices)


def test_a_words_draw_does_not_depend_on_the_other_words():
    alone = few_shot(["up"] * 20, 5)[0].indices
    among = next(t for t in few_shot(["up"] * 20 + ["go"] * 9, 5) if t.words == ("up",)).indices
    assert alone.tolist() == among.tolist()


def test_draws_differ_between_words_and_are_fair():
    words = ["a"] * 10 + ["b"] * 10
    first = [
        {task.words[0]: int(task.indices[0]) % 10 for task in few_shot(words, 1, seed)}
        for seed in range(400)
    ]
    assert 15 < sum(draw["a"] == draw["b"] for draw in first) < 70
    assert np.bincount([draw["a"] for draw in first], minlength=10).min() > 20


def test_arrays_of_words_are_taken_too():
    assert class_iid(np.array(WORDS))[0].words == class_iid(WORDS)[0].words
    assert type(class_iid(np.array(WORDS))[0].words[0]) is str


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "class"}, "no order named 'class'; known: class-iid, iid, few-shot"),
        ({"order": "few-shot"}, "shots go with few-shot"),
        ({"order": "iid", "shots": 3}, "only with it; got 3, iid"),
        ({"order": "iid", "classes_per_task": 2}, "iid is one task"),
        ({"order": "class-iid", "classes_per_task": 0}, "at least 1, got 0"),
        ({"order": "class-iid", "seed": -1}, "seed must be at least 0, got -1"),
        ({"order": "iid", "words": []}, "at least one sample"),
        ({"order": "few-shot", "shots": 0}, "shots must be at least 1, got 0"),
        (
            {"order": "few-shot", "shots": 9},
            r"3 of 7 words have fewer \('word4' 8, 'word5' 8, 'word6' 8\); lower shots",
        ),
    ],
)
def test_what_cannot_be_made(arguments, message):
    with pytest.raises(InputError, match=message):
        make(**({"words": WORDS} | arguments))
