"""Size and CPU time of the core for web pages, in node.

make wasm
python benchmarks/web.py build/web/core
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tapword.assets import CLIPS
from tapword.audio import files

REPEATS = 20
SCRIPT = """
import fs from 'node:fs';
const [folder, path, repeats] = process.argv.slice(2);
const {Core} = await import(`${folder}/core.js`);
const core = await Core.open(fs.readFileSync(`${folder}/tapword.wasm`));
const clip = new Float32Array(fs.readFileSync(path).buffer);
const least = job => Math.min(...Array.from({length: repeats}, () => {
  const before = process.cpuUsage().user;
  job();
  return (process.cpuUsage().user - before) / 1000;
}));
const teach = least(() => core.learn(clip, 'lamp'));
const predict = least(() => core.predict(clip));
core.startStream();
const speech = least(() => core.hear(clip));
const silence = new Float32Array(16000);
for (let k = 0; k < 5; k++) core.hear(silence);
const quiet = least(() => core.hear(silence));
console.log(JSON.stringify({teach, predict, speech, quiet}));
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("core", type=Path)
    core = parser.parse_args().core
    clip = files.read(sorted((CLIPS / "lamp").glob("flite-*.ogg"))[0])
    clip = np.pad(clip, (0, max(0, 16_000 - len(clip))))[:16_000]
    with tempfile.TemporaryDirectory() as folder:
        sound, script = Path(folder, "clip.f32"), Path(folder, "speed.mjs")
        clip.astype("<f4").tofile(sound)
        script.write_text(SCRIPT)
        command: list[str | Path] = ["node", script, core.resolve(), sound, str(REPEATS)]
        found = json.loads(subprocess.check_output(command))
    print(f"tapword.wasm: {(core / 'tapword.wasm').stat().st_size:,} bytes")
    for name, text in {
        "teach": "learn a clip of a second and its copies",
        "predict": "say which word a clip of a second is",
        "speech": "hear a second of a stream with a word in it",
        "quiet": "hear a second of a stream in which nobody speaks",
    }.items():
        print(f"{text}: {found[name]:.1f} ms")


if __name__ == "__main__":
    main()
