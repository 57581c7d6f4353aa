"""The React hook of the examples, with a stand-in for React and one for the core."""

import json
import shutil
import subprocess

import pytest

from tests.conftest import ROOT

# Hooks of one component, which is rendered again after each change of a state.
REACT = """
let cells = [], at = 0, render;
export const settle = async () => { for (let i = 0; i < 50; i++) await null; };
export function mount(component) {
  render = () => {
    at = 0;
    const given = component();
    const due = cells.filter(cell => cell.due);
    for (const cell of due) { cell.due = false; cell.stop?.(); cell.stop = cell.effect(); }
    mount.shown = given;
  };
  render();
}
const next = make => cells[at++] ??= (cells.push(make()), cells.at(-1));
const same = (a, b) => a && a.every((one, i) => Object.is(one, b[i]));
export function useState(first) {
  const cell = next(() => ({value: first}));
  return [cell.value, value => {
    if (Object.is(cell.value, value)) return;
    cell.value = value;
    queueMicrotask(render);
  }];
}
export const useRef = first => next(() => ({current: first}));
export function useCallback(call, needs) {
  const cell = next(() => ({}));
  if (!same(cell.needs, needs)) Object.assign(cell, {call, needs});
  return cell.call;
}
export function useEffect(effect, needs) {
  const cell = next(() => ({}));
  if (!same(cell.needs, needs)) Object.assign(cell, {effect, needs, due: true});
}
"""
CORE = """
export const log = [];
export const record = async (stream, seconds) => { log.push(['record', seconds]); return 'take'; };
export class Tapword {
  static async load() { return new Tapword(); }
  known = [];
  async learn(take, word) {
    if (!word) throw new Error('the word is empty');
    log.push(['learn', take, word]);
    this.known.push({word});
  }
  async words() { return [...this.known]; }
  async forget(word) { this.known = this.known.filter(one => one.word !== word); }
  async save() { return new Uint8Array([this.known.length]); }
  async listen(stream, onEvent) {
    log.push(['listen', stream]);
    this.onEvent = onEvent;
    Tapword.listening = this;
    return {stop: async () => { log.push(['stop', stream]); }};
  }
}
"""
TRY = """
import {mount, settle} from 'react';
import {log, Tapword} from '@tapword/core';
import {useTapword} from './useTapword.js';

let stream = null, heard = [], turn = 0;
mount(() => {
  const mine = ++turn;
  return useTapword(stream, event => heard.push([event.word, mine > 1]));
});
const states = [mount.shown.state];
await settle();
states.push(mount.shown.state);
stream = 'microphone';
await mount.shown.teach('lamp').then(settle);
states.push(mount.shown.state);
Tapword.listening.onEvent({word: 'lamp', confidence: 90});
const words = mount.shown.words.map(one => one.word);
await mount.shown.teach('').then(settle);
const problem = mount.shown.problem;
const saved = [...await mount.shown.save()];
await settle();
await mount.shown.forget('lamp').then(settle);
console.log(JSON.stringify({
  states, words, problem, saved, heard, log, left: mount.shown.words, last: mount.shown.problem}));
"""


def test_the_hook_teaches_listens_and_reports(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("needs node: apt install nodejs")
    for name, text in (("react", REACT), ("@tapword/core", CORE)):
        folder = tmp_path / "node_modules" / name
        folder.mkdir(parents=True)
        (folder / "package.json").write_text('{"type": "module", "main": "index.js"}')
        (folder / "index.js").write_text(text)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    shutil.copy(ROOT / "examples" / "web" / "useTapword.js", tmp_path)
    (tmp_path / "try.js").write_text(TRY)
    done = subprocess.run(["node", tmp_path / "try.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["states"] == ["loading", "ready", "ready"]
    assert found["words"] == ["lamp"] and found["heard"] == [["lamp", True]]
    assert found["problem"] == "the word is empty" and found["last"] == ""
    assert found["saved"] == [1] and found["left"] == []
    # Recording and listening share a microphone: one ends before the other begins.
    listening = [kind for kind, *_ in found["log"] if kind in ("listen", "stop", "record")]
    assert ["learn", "take", "lamp"] in found["log"]
    assert listening.count("listen") == listening.count("stop") + 1
