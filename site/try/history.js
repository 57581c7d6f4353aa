// What this page changed: any of it can be taken back while the page is open. Of each change the
// model before it is held, and what was done; a take in between is removed by doing the others anew.

import settings from './settings.js';

export class History {
  #changes = [];
  #numbers = 0;
  #spotter;

  constructor(spotter) { this.#spotter = spotter; }

  // Do something that can be undone. It says its kind and its words, how to `make` it, and what it
  // does to the list of takes; gives its number.
  async make(change) {
    const before = await this.#spotter.save();
    const value = await change.make();
    this.#changes.push({...change, id: ++this.#numbers, before, gone: false});
    if (this.#changes.length > settings.limits.changes) this.#changes.shift();
    return {id: this.#numbers, value};
  }

  // Takes that are in the model, as the changes after them left them.
  takes() {
    return this.#changes.filter(({gone}) => !gone).reduce((takes, change) => change.takes(takes, change.id), []);
  }

  get last() {
    const {kind, word, new: now} = this.#changes.at(-1) ?? {};
    return kind ? {kind, word, new: now} : null;
  }

  async undo() {
    const change = this.#changes.at(-1);
    if (!change) throw new Error('there is nothing to undo');
    await this.#spotter.load(change.before);
    this.#changes.pop();
    if (change.removed) change.removed.gone = false;
  }

  async remove(id) {
    const removed = this.#changes.find(change => change.id === id && !change.gone);
    if (!removed) throw new Error('this take was removed already');
    const make = async () => {
      removed.gone = true;
      // Earlier ones that were removed are still in what came before the later ones.
      const first = this.#changes.findIndex(({gone}) => gone);
      await this.#spotter.load(this.#changes[first].before);
      for (const change of this.#changes.slice(first)) if (!change.gone && !change.removed) await change.make();
    };
    await this.make({kind: 'remove', word: removed.word, make, removed, takes: takes => takes});
  }

  clear() { this.#changes = []; }
}
