"""Train both sizes of the ear on words spoken by many voices in many rooms.

    python training/ear/train.py FOLDER SECONDS OUT CHECKPOINT [DEVICE [MOST]]

FOLDER holds what speak.py and real.py wrote or will write (train.py compiles kernels first, then
waits for them), mel.npz and the teachers' weights, among them earlier.safetensors, a small ear
(unfold.py makes it from shipped weights). CHECKPOINT/SIZE/ear.safetensors is where a size starts; a
size without such a file starts from random weights. OUT/SIZE/ear.safetensors, written every minute,
is the network averaged over its last steps.

Words are heard in running sound: a row of the batch is several windows one after another, from
other voices, rooms and noises, and the network runs over the whole row. A quarter of the windows
begins with nothing, as a clip does.

SECONDS, or the content of a file of that name, count from when all is spoken. A step is recorded
once for each kind of window and replayed. In the environment: SEED; SIZES, comma-separated;
COMPILE=0 and GRAPH=0 do without either. To try it on a computer without a GPU, DEVICE is cpu and
MOST limits the words of each file.
"""

import glob
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from network import DELAY, HOP, VECTOR, Ear, Mel
from noises import Noises
from rooms import Tracts, cut, extents, hide, isolate, spoil
from safetensors.torch import load_file, save_file
from teachers import CENTRE, INNER_CENTRE, TARGET, Embedding, Panel, agree
from torch import nn
from torch.nn import functional as F

# Windows of single words and of phrases: samples, how many, the longest extent.
KINDS = {"word": (25_600, 1_024, 18_000), "phrase": (51_200, 512, 42_000)}
# Samples of a row of windows.
ROW = 102_400
# One step in so many is of phrases.
PHRASES = 8
# Shares of real words, and of real speech without labels: sentences, calls, other languages.
REAL, FREE = 0.24, {"sentences": 0.10, "calls": 0.12, "others": 0.12}
# Beside a word stands in a batch one of so many that are nearest to it for the panel; beside speech
# without a label one of so many such pieces, but none from within so many samples.
NEAR_WORDS, NEAR_PIECES, ELSEWHERE = 12, 8, 48_000
# Share of words whose neighbours are silenced.
ALONE = 0.5
SCALE, MARGIN = 28.0, 0.25
# Frames after a window that may belong to its word.
AFTER = 4
RATE, WARM, AVERAGE = 2e-3, 300, 0.9995
# What counts how much: words, the embedding's inner frames, its output, the panel's vectors, which
# clips are near each other for the panel, and how near all are.
WEIGHTS = (0.35, 18.0, 24.0, 20.0, 4.0, 15.0)
# How sharply nearness is judged: the panel's similarity over this.
SHARPNESS = 0.08


class Corpus:
    """All that was said, on the GPU: one long recording, and where its words are."""

    def __init__(self, folder: str, device: str, most: int | None = None):
        audio, spans, real, total = [], [], [], 0
        for path in [*sorted(glob.glob(f"{folder}/said_*.npz")), f"{folder}/real.npz"]:
            file = np.load(path)
            found = file["spans"]
            if most is not None:
                found = found[np.random.default_rng(0).permutation(len(found))[:most]]
            audio.append(torch.from_numpy(file["audio"]).to(device))
            spans.append(found + np.array([total, total, 0, 0]))
            real.append(np.full(len(found), path.endswith("real.npz")))
            total += len(audio[-1])
        where, true = np.concatenate(spans), np.concatenate(real)
        length = where[:, 1] - where[:, 0]
        fits = (length >= 2_400) & (length <= KINDS["phrase"][2])
        where, true, length = where[fits], true[fits], length[fits]
        self.audio = torch.cat(audio)
        self.spans = torch.from_numpy(where).to(device)
        # Where each is from: spoken, real, then as in FREE.
        domain = np.where(where[:, 2] >= 0, true.astype(int), 1 - where[:, 2])
        self.domain = torch.from_numpy(domain).to(device)
        short, known = length <= KINDS["word"][2], where[:, 2] >= 0
        self.groups = {
            name: torch.from_numpy(np.flatnonzero(rows)).to(device)
            for name, rows in {
                "real": short & true & known,
                "word": short & ~true,
                "phrase": ~short & known,
                **{kind: where[:, 2] == -1 - at for at, kind in enumerate(FREE)},
            }.items()
        }
        self.short = torch.from_numpy(np.flatnonzero(short & known)).to(device)
        self.free = torch.cat([self.groups[name] for name in FREE])
        # The panel's vectors, and which of them is whose.
        self.lessons = torch.zeros(1, TARGET, dtype=torch.half, device=device)
        self.lesson = torch.zeros(len(where), dtype=torch.long, device=device)
        self.by_word = {
            "word": self._by_word(self.short),
            "phrase": self._by_word(self.groups["phrase"]),
        }
        self.near: dict[str, torch.Tensor] = {}

    def _by_word(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Rows in the order of their words, where each word begins, and how many it has."""
        label = self.spans[rows, 2]
        words = int(self.spans[:, 2].max()) + 1
        count = torch.bincount(label, minlength=words)
        return rows[label.argsort()], count.cumsum(0) - count, count

    def draw(self, kind: str, count: int) -> tuple[torch.Tensor, int]:
        """Positions of so many words or phrases, those with a label first, and how many have one.

        A third of those with a label are drawn at random, a third are other clips of their words,
        and a third are words that are near them for the panel. Half of those without a label are
        drawn at random, and half are near them.
        """
        if kind == "phrase":
            return self._three(kind, self._some("phrase", count - count // 3 * 2), count), count
        free = {name: round(count * share / 2) for name, share in FREE.items()}
        known = count - 2 * sum(free.values())
        real, first = round(count * REAL / 3), known - known // 3 * 2
        first = torch.cat([self._some("real", real), self._some("word", first - real)])
        place, before = [], 0
        for name, number in free.items():
            size = len(self.groups[name])
            place.append(before + torch.randint(size, (number,), device=self.free.device))
            before += size
        at = torch.cat(place)
        beside = self.near["free"][at]
        beside = beside.gather(1, torch.randint_like(at, beside.shape[1])[:, None])[:, 0]
        return torch.cat([self._three(kind, first, known), self.free[at], self.free[beside]]), known

    def _three(self, kind: str, rows: torch.Tensor, count: int) -> torch.Tensor:
        """Add other clips of these words and clips of near words, so that there are `count`."""
        label = self.spans[rows[: count // 3], 2]
        near = self.near[kind][label]
        near = near.gather(1, torch.randint_like(label, near.shape[1])[:, None])[:, 0]
        return torch.cat([rows, self._clips(kind, label), self._clips(kind, near)])

    def _clips(self, kind: str, label: torch.Tensor) -> torch.Tensor:
        order, first, count = self.by_word[kind]
        chosen = (torch.rand(len(label), device=label.device) * count[label]).long()
        return order[first[label] + chosen]

    def _some(self, group: str, count: int) -> torch.Tensor:
        rows = self.groups[group]
        return rows[torch.randint(len(rows), (count,), device=rows.device)]

    def listen_to(self, panel: Panel, batch: int = 2_048) -> None:
        """Take the panel's vectors of all there is."""
        words = int(self.spans[:, 2].max()) + 1
        lessons: list[torch.Tensor] = []
        for kind, rows in (
            ("word", torch.cat([self.short, self.free])),
            ("phrase", self.groups["phrase"]),
        ):
            if not len(rows):
                continue
            spans, size = self.spans[rows], batch if kind == "word" else batch // 2
            raw = panel.hear(self.audio, spans, kind == "word", size)
            self.lesson[rows] = torch.arange(len(rows), device=rows.device) + sum(map(len, lessons))
            # What has no label is like nothing but itself.
            label, known = spans[:, 2].clone(), spans[:, 2] >= 0
            label[~known] = words + torch.arange(int((~known).sum()), device=label.device)
            vectors = agree(raw, label, self.domain[rows])
            lessons.append(vectors)
            mean = torch.zeros(words, TARGET, device=rows.device)
            mean.index_add_(0, label[known], vectors[known].float())
            said = self.by_word[kind][2].nonzero()[:, 0]
            near = said[nearest(F.normalize(mean[said], dim=1).half(), NEAR_WORDS)]
            self.near[kind] = near.new_zeros(words, near.shape[1])
            self.near[kind][said] = near
            if kind == "word":
                free = spans[~known]
                self.near["free"] = nearest(vectors[~known], NEAR_PIECES, start=free[:, 0])
        self.lessons = torch.cat(lessons)


class Student:
    """One size of the ear, with what only training needs: words' directions, teachers' features."""

    def __init__(self, size: str, words: int, checkpoint: str, device: str):
        self.size, self.ear = size, Ear(size).to(device)
        path = Path(checkpoint, size, "ear.safetensors")
        self.begun = path.exists()
        if self.begun:
            print(size, self.ear.load_state_dict(load_file(path), strict=False), flush=True)
        width, pooled = self.ear.size.width, self.ear.size.pooled
        self.extra = nn.ModuleDict(
            {
                "frames": nn.Linear(width, 192),
                "target": nn.Linear(pooled, TARGET),
                "frames_norm": nn.BatchNorm1d(192, affine=False, momentum=0.01),
                "like_norm": nn.BatchNorm1d(96, affine=False, momentum=0.01),
            }
        ).to(device)
        self.words = nn.Parameter(torch.randn(words, VECTOR, device=device) * 0.05)
        self.sharpness = nn.Parameter(torch.tensor(float(np.log(15.0)), device=device))
        self.hidden: Callable = self.ear.hidden
        self.state = [v for v in self.ear.state_dict().values() if v.is_floating_point()]
        self.mean = [v.clone() for v in self.state]
        self.report = torch.zeros(len(WEIGHTS) + 1, device=device)

    def groups(self) -> list[dict]:
        """Parameters for the optimizer: matrices decay, the rest does not."""
        own = list(self.ear.parameters())
        rest = [p for p in own if p.ndim < 2]
        rest += [*self.extra.parameters(), self.words, self.sharpness]
        return [
            {"params": [p for p in own if p.ndim >= 2], "weight_decay": 0.03},
            {"params": rest, "weight_decay": 0.0},
        ]

    @torch.no_grad()
    def place(self, corpus: Corpus, mel: Mel, batch: int = 1_024) -> None:
        """Give each word the direction of its clips for the head of the checkpoint."""
        total = torch.zeros_like(self.words)
        self.ear.eval()
        for kind, rows in (("word", corpus.short), ("phrase", corpus.groups["phrase"])):
            for first in range(0, len(rows), batch):
                spans = corpus.spans[rows[first : first + batch]]
                x, start, stop = cut(corpus.audio, spans, KINDS[kind][0], vary=False)
                x = isolate(x, start, stop, 1.0)
                vector = self.ear.head(self.ear.clips(mel, x, start, stop))
                total.index_add_(0, spans[:, 2], F.normalize(vector, dim=1))
        self.ear.train()
        known = total.norm(dim=1) > 0
        self.words[known] = F.normalize(total[known], dim=1)

    def compile(self, rows: int) -> None:
        """Compile forward and backward pass for rows of log-mel frames."""
        self.hidden = torch.compile(self.ear.rows, dynamic=False)
        kept = {k: v.clone() for k, v in self.ear.state_dict().items()}
        with torch.autocast("cuda", torch.bfloat16):
            hidden = self.hidden(torch.randn(rows, 40, ROW // 160, device=self.words.device))
        hidden.float().square().mean().backward()
        self.ear.zero_grad(set_to_none=True)
        self.ear.load_state_dict(kept)

    def save(self, out: str) -> None:
        """Write the averaged network."""
        folder = Path(out, self.size)
        folder.mkdir(parents=True, exist_ok=True)
        names = [k for k, v in self.ear.state_dict().items() if v.is_floating_point()]
        content = dict(zip(names, self.mean, strict=True))
        content = {k: v.detach().contiguous().cpu() for k, v in content.items()}
        save_file(content, folder / "ear.new")
        os.replace(folder / "ear.new", folder / "ear.safetensors")


@dataclass
class Batch:
    """Windows of one batch, and what the teachers say of them."""

    seen: torch.Tensor  # log-mel frames of rows (rows, 40, ROW / 160)
    first: torch.Tensor  # where a word's extent begins in its window, in samples (b,)
    last: torch.Tensor
    labelled: torch.Tensor  # windows with a label
    target: torch.Tensor  # their words
    wanted: torch.Tensor  # the panel's vectors (b, TARGET)
    inner: torch.Tensor  # the embedding's inner frames of rows, and its output
    heard: torch.Tensor
    weight: torch.Tensor  # how much a frame counts (rows, ROW / HOP)


class Training:
    """The students, what they learn from, and one step."""

    def __init__(self, folder: str, words: int, device: str, checkpoint: str):
        self.device = device
        tables = np.load(f"{folder}/mel.npz")
        self.mel, self.teacher_mel = (Mel(tables[name]).to(device) for name in ("ear", "teacher"))
        self.tracts = Tracts(self.mel).to(device)
        precise = torch.float32 if device == "cpu" else torch.bfloat16
        self.embedding = Embedding(f"{folder}/embedding_model.onnx", precise).to(device)
        self.teach: Callable = self.embedding
        sizes = os.environ.get("SIZES", "small,medium").split(",")
        self.students = [Student(size, words, checkpoint, device) for size in sizes]
        self.rate = torch.tensor(0.0, device=device)
        cuda = device == "cuda"
        self.optimizer = torch.optim.AdamW(
            [group for student in self.students for group in student.groups()],
            lr=self.rate if cuda else RATE / 10,
            capturable=cuda,
            fused=cuda,
        )
        self.graphs: dict[str, torch.cuda.CUDAGraph] = {}
        self.corpus: Corpus
        self.noises: Noises

    def count(self, kind: str) -> int:
        """Windows of a batch."""
        return KINDS[kind][1] // (1 if self.device == "cuda" else 32)

    def warm(self) -> None:
        """Compile the students and the embedding, before there is sound."""
        rows = self.count("word") * KINDS["word"][0] // ROW
        x = torch.randn(rows, ROW, device=self.device) * 0.1
        self.teach = torch.compile(self.embedding.forward, dynamic=False)
        with torch.no_grad():
            self.teach(self.teacher_mel(x))
        for student in self.students:
            student.compile(rows)

    def prepare(self, corpus: Corpus, panel: Panel, noises: Noises) -> None:
        """Encode the corpus with the panel, and place words where a checkpoint has them."""
        self.corpus, self.noises = corpus, noises
        corpus.listen_to(panel)
        for student in self.students:
            if student.begun:
                student.place(corpus, self.mel)
        noises.fill(corpus.audio)

    @torch.no_grad()
    def batch(self, kind: str) -> Batch:
        """Draw windows and spoil them, half of them one by one and half as rows."""
        corpus, window, size = self.corpus, KINDS[kind][0], self.count(kind)
        index, known = corpus.draw(kind, size)
        order = torch.rand(size, device=index.device).argsort()
        labelled, index = order.argsort()[:known], index[order]
        spans = corpus.spans[index]
        target = spans[:, 2]
        clean, start, stop = cut(corpus.audio, spans, window)
        # What has no label is never cut out of its sentence.
        clean = torch.where((target >= 0)[:, None], isolate(clean, start, stop, ALONE), clean)
        inner, heard = self.teach(self.teacher_mel(clean.reshape(-1, ROW)))
        each = ROW // window
        half = size // (2 * each) * each
        alone = spoil(clean[:half], start[:half], stop[:half], self.noises)
        row = clean[half:].reshape(-1, ROW)
        until = ROW - window + stop[half:].reshape(-1, each)[:, -1]
        together = spoil(row, start[half:].reshape(-1, each)[:, 0], until, self.noises)
        spoilt = torch.cat([alone.reshape(-1, ROW), together])
        first, last = extents(spoilt.reshape(-1, window), start, stop, kind == "word")
        mel = hide(self.tracts(spoilt, size))
        mel = mel.unflatten(0, (-1, each)).transpose(1, 2).flatten(2).contiguous()
        # Frames about the word count in full, those far from it little.
        at = torch.arange(window // HOP, device=clean.device)[None] * HOP
        near = (at > start[:, None] - 3_200) & (at < stop[:, None] + 3_200)
        weight = torch.where(near | (target < 0)[:, None], 1.0, 0.25).reshape(len(mel), -1)
        return Batch(
            seen=mel,
            first=first,
            last=last,
            labelled=labelled,
            target=target[labelled],
            wanted=corpus.lessons[corpus.lesson[index]].float(),
            inner=inner,
            heard=heard,
            weight=weight.roll(DELAY, 1),
        )

    def losses(self, student: Student, kind: str, batch: Batch) -> torch.Tensor:
        """Losses of one batch as in WEIGHTS, and the share of words that are right."""
        ear = student.ear
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            hidden = student.hidden(batch.seen)
        hidden = hidden.float()
        frames, like, look = ear.frames(hidden)
        length = KINDS[kind][0] // HOP
        pool = ear.pool(windows(frames, length), windows(look, length), batch.first, batch.last)
        vector = ear.head(pool[batch.labelled])
        similar = F.normalize(vector, dim=1) @ F.normalize(student.words, dim=1).T
        row = batch.target
        pushed = similar.scatter_add(1, row[:, None], torch.full_like(similar[:, :1], -MARGIN))
        word_loss = F.cross_entropy(SCALE * pushed, row)
        right = (similar.argmax(1) == row).float().mean()
        extra = student.extra
        inner_loss = follow(
            extra["frames"](hidden), batch.inner, extra["frames_norm"], INNER_CENTRE, batch.weight
        )
        like_loss = follow(like, batch.heard, extra["like_norm"], CENTRE, batch.weight)
        unit = F.normalize(pool, dim=1)
        near_loss, all_loss = relate(unit, batch.wanted, student.sharpness.exp())
        vector_loss = word_loss.new_zeros(())
        if kind == "word":
            vector_loss = 1 - F.cosine_similarity(extra["target"](unit * 8), batch.wanted).mean()
        return torch.stack(
            [word_loss, inner_loss, like_loss, vector_loss, near_loss, all_loss, right]
        )

    def step(self, kind: str) -> None:
        """Learn from one batch."""
        batch = self.batch(kind)
        self.optimizer.zero_grad(set_to_none=True)
        reports = []
        for student in self.students:
            losses = self.losses(student, kind, batch)
            sum(weight * loss for weight, loss in zip(WEIGHTS, losses, strict=False)).backward()
            nn.utils.clip_grad_norm_(student.ear.parameters(), 5.0)
            reports.append(losses.detach())
        self.optimizer.step()
        with torch.no_grad():
            for student, losses in zip(self.students, reports, strict=True):
                torch._foreach_lerp_(student.mean, student.state, 1 - AVERAGE)
                if kind == "word":
                    student.report.lerp_(losses, 0.02)

    def record(self, kind: str) -> None:
        """Keep one step as a graph, after some that are thrown away."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(4):
                self.step(kind)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step(kind)
        self.graphs[kind] = graph

    def go(self, kind: str) -> None:
        """Learn from one batch, by the graph where there is one."""
        if kind in self.graphs:
            self.graphs[kind].replay()
        else:
            self.step(kind)


def windows(rows: torch.Tensor, length: int) -> torch.Tensor:
    """Cut rows (r, t, d) into windows (b, length + AFTER, d), each with some frames after it."""
    rows = torch.cat([rows, rows[:, -1:].expand(-1, AFTER, -1)], 1)
    return rows.unfold(1, length + AFTER, length).flatten(0, 1).transpose(1, 2)


def nearest(x: torch.Tensor, count: int, start: torch.Tensor | None = None) -> torch.Tensor:
    """Give for each unit vector which others are nearest (n, count).

    Where `start` says where each stands in a recording, its neighbours there do not count.
    """
    found, place = [], torch.arange(len(x), device=x.device)
    for first in range(0, len(x), 4_096):
        rows = place[first : first + 4_096]
        near = (x[rows] @ x.T).float()
        near[place[: len(rows)], rows] = -2.0
        if start is not None:
            near[(start[rows, None] - start[None]).abs() < ELSEWHERE] = -2.0
        found.append(near.topk(min(count, len(x)), dim=1).indices)
    return torch.cat(found)


def relate(
    unit: torch.Tensor, wanted: torch.Tensor, sharpness: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compare which clips are near which, for the ear's vectors and for the panel's, both unit.

    Returns how far the neighbours of each clip are from the panel's (divergence), and how far all
    similarities of the batch are from following the panel's by one line (1 - correlation), where
    pairs that are near for the panel count more: one threshold is to serve for all words.
    """
    apart = 1.0 - torch.eye(len(unit), device=unit.device)
    ours, theirs = unit @ unit.T, wanted @ wanted.T
    far = (apart - 1.0) * 1e4
    given = F.log_softmax(ours * sharpness + far, 1)
    goal = F.softmax(theirs / SHARPNESS + far, 1)
    near_loss = (goal * (goal.clamp_min(1e-8).log() - given) * apart).sum(1).mean()
    weight = apart * (0.03 + theirs.clamp_min(0))
    weight = weight / weight.sum()
    x, y = ours - (ours * weight).sum(), theirs - (theirs * weight).sum()
    varied = (x.square() * weight).sum() * (y.square() * weight).sum()
    return near_loss, 1 - (x * y * weight).sum() / varied.clamp_min(1e-12).sqrt()


def follow(
    given: torch.Tensor,
    wanted: torch.Tensor,
    norm: nn.BatchNorm1d,
    centre: int,
    weight: torch.Tensor,
) -> torch.Tensor:
    """Give how far frames (b, t, d) are from a teacher's, whose first is centred on `centre`."""
    # The ear's frame answers for what lies DELAY frames before it.
    first = round(centre / 4) + DELAY
    count = min(wanted.shape[1], given.shape[1] - first)
    b, _, d = given.shape
    wanted = norm(wanted[:, :count].reshape(-1, d)).clamp(-6, 6).reshape(b, count, d)
    weight = weight[:, first : first + count]
    far = F.smooth_l1_loss(given[:, first : first + count], wanted, reduction="none").mean(2)
    return (far * weight).sum() / weight.sum()


def main(
    folder: str,
    seconds: str,
    out: str,
    checkpoint: str,
    device: str = "cuda",
    most: str = "",
) -> None:
    """Train until the time is up."""
    began = time.time()
    torch.manual_seed(int(os.environ.get("SEED", "0")))
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    words = len(json.loads(Path(folder, "words.json").read_text("utf-8")))
    training = Training(folder, words, device, checkpoint)
    if device == "cuda" and os.environ.get("COMPILE", "1") == "1":
        try:
            training.warm()
        except RuntimeError as error:
            print("not compiled:", error, flush=True)
            training.teach = training.embedding
            for student in training.students:
                student.hidden = student.ear.hidden
    print("warm after", round(time.time() - began), "s", flush=True)
    while not (Path(folder, "spoken").exists() and Path(folder, "real.npz").exists()):
        time.sleep(0.2)
    began = Path(folder, "spoken").stat().st_mtime
    corpus = Corpus(folder, device, int(most) if most else None)
    print({k: len(v) for k, v in corpus.groups.items()}, words, "labels", flush=True)
    print("corpus after", round(time.time() - began), "s", flush=True)
    noises = Noises(device, *(() if device == "cuda" else (64, 32)))
    training.prepare(corpus, Panel(folder, training.embedding, device), noises)
    print("heard after", round(time.time() - began), "s", flush=True)
    if device == "cuda" and os.environ.get("GRAPH", "1") == "1":
        for kind in KINDS:
            training.record(kind)
            print("recorded", kind, "after", round(time.time() - began), "s", flush=True)
    limit = float(Path(seconds).read_text() if Path(seconds).is_file() else seconds)
    step, first, saved = 0, time.time(), time.time()
    while (spent := time.time() - began) < limit:
        done = (time.time() - first) / (limit - (first - began))
        rate = RATE * min(1, (step + 1) / WARM) * (0.5 + 0.5 * np.cos(np.pi * done)) + 1e-6
        training.rate.fill_(rate)
        training.go("phrase" if step % PHRASES == PHRASES - 1 else "word")
        step += 1
        if step % 20 == 0 and device == "cuda":
            torch.cuda.synchronize()
        if step % 250 == 0:
            noises.refresh(corpus.audio)
        if step % 500 == 0 or device == "cpu":
            for student in training.students:
                figures = " ".join(f"{value:.3f}" for value in student.report.tolist())
                print(step, round(spent), student.size, figures, flush=True)
        if time.time() - saved > 60:
            for student in training.students:
                student.save(out)
            saved = time.time()
    for student in training.students:
        student.save(out)
    print("done", step, "steps", round(time.time() - began), "s", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
