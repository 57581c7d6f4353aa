// Changes of this page, to undo them while it is open. Each holds the model before it and how it was
// made; a take is removed by making the changes after it again.

import settings from './settings.js';

export class History {
  #changes = [];
  #numbers = 0;
  #spotter;

  constructor(spotter) { this.#spotter = spotter; }

  // Make a change: its kind and words, how to `make` it, and what it does to the list of `takes`.
  // Returns its number.
  async make(change) {
    const before = await this.#spotter.save();
    try {
      await change.make();
    } catch (error) {
      await this.#spotter.load(before);
      throw error;
    }
    this.#changes.push({...change, id: ++this.#numbers, before, gone: false});
    if (this.#changes.length > settings.limits.changes) this.#changes.shift();
    return this.#numbers;
  }

  // Takes in the model, after all changes.
  takes() {
    return this.#changes.filter(({gone}) => !gone).reduce((takes, change) => change.takes(takes, change.id), []);
  }

  get last() {
    const change = this.#changes.at(-1);
    return change ? {kind: change.kind, word: change.word, new: change.new} : null;
  }

  async undo() {
    const change = this.#changes.at(-1);
    if (!change) throw Object.assign(new Error('nothing to undo'), {code: 'nothing_to_undo'});
    await this.#spotter.load(change.before);
    change.undo?.();
    this.#changes.pop();
  }

  async remove(id) {
    const place = this.#changes.findIndex(change => change.id === id && !change.gone);
    if (place < 0) throw Object.assign(new Error('already removed'), {code: 'take_removed'});
    const removed = this.#changes[place];
    const later = this.#changes.slice(place + 1).filter(change => !change.gone && change.kind !== 'remove');
    const befores = later.map(({before}) => before);
    const undo = () => {
      removed.gone = false;
      later.forEach((change, i) => { change.before = befores[i]; });
    };
    const make = async () => {
      try {
        await this.#spotter.load(removed.before);
        for (const change of later) {
          change.before = await this.#spotter.save();
          // Its word may be gone with the take.
          await change.make().catch(error => { if (error.code !== 'TAPWORD_UNKNOWN') throw error; });
        }
        removed.gone = true;
      } catch (error) {
        undo();
        throw error;
      }
    };
    await this.make({kind: 'remove', word: removed.word, make, undo, takes: takes => takes});
  }

  clear() { this.#changes = []; }
}
