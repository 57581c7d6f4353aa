"""Avalanche's StreamingLDA: learn samples one by one, predict after some."""

import json
import re
import sys
import time
from statistics import median

import numpy as np
import torch

# torchvision's compiled part needs a GPU build of torch. Avalanche imports it and does not call it
# here, so missing operators are declared by name.
operators = torch.library.Library("torchvision", "FRAGMENT")
for _ in range(50):
    try:
        import torchvision  # noqa: F401

        break
    except RuntimeError as error:
        missing = re.search(r"operator torchvision::(\w+) does not exist", str(error))
        if missing is None:
            raise
        operators.define(f"{missing[1]}(Tensor given) -> Tensor")
        for name in [name for name in sys.modules if name.startswith("torchvision")]:
            del sys.modules[name]

from avalanche.training.supervised import StreamingLDA  # noqa: E402

torch.set_num_threads(1)
print("ready", flush=True)
learner = None
for line in sys.stdin:
    question = json.loads(line)
    with np.load(question["file"]) as file:
        X, words = torch.from_numpy(file["X"]), torch.from_numpy(file["words"])
    if learner is None:
        learner = StreamingLDA(
            slda_model=torch.nn.Identity(),
            criterion=None,
            input_size=X.shape[1],
            num_classes=int(words.max()) + 1,
            evaluator=None,
        )
    learns, firsts = [], []
    for index in range(question["start"], question["stop"]):
        before = time.process_time()
        learner.fit(X[index : index + 1], words[index : index + 1])
        learns.append(1000 * (time.process_time() - before))
        if index >= question["stop"] - question["predict"]:
            before = time.process_time()
            learner.predict(X[:1])
            firsts.append(1000 * (time.process_time() - before))
    chosen = learner.predict(X[-200:]).argmax(1).tolist()
    answer = {"learn_ms": median(learns), "predict_ms": median(firsts), "chosen": chosen}
    print(json.dumps(answer), flush=True)
