// Teach from recordings: the browser decodes them, so any format it can play will do.

import {post, sentence, sentences} from './api.js';
import {RATE} from './microphone.js';
import {$, count, element, icon, quoted} from './page.js';

const LONGEST_S = 10, MOST_FILES = 50, MOST_BYTES = 20e6;

export function setUp() {
  $('files').onchange = () => { teach([...$('files').files]); $('files').value = ''; };
  // A label is not reached by the keyboard; its input is, though it cannot be seen.
  $('files').onfocus = () => $('drop').classList.add('focus');
  $('files').onblur = () => $('drop').classList.remove('focus');
  const zone = $('teach');
  let inside = 0;
  zone.ondragenter = event => { event.preventDefault(); inside++; $('drop').classList.add('over'); };
  zone.ondragleave = () => { if (!--inside) $('drop').classList.remove('over'); };
  zone.ondragover = event => event.preventDefault();
  zone.ondrop = event => {
    event.preventDefault();
    inside = 0;
    $('drop').classList.remove('over');
    teach([...event.dataTransfer.files]);
  };
  // A file dropped beside the zone must not replace the page.
  addEventListener('dragover', event => event.preventDefault());
  addEventListener('drop', event => event.preventDefault());
}

async function teach(files) {
  if (!files.length) return;
  const list = $('file-list');
  list.replaceChildren();
  if (!$('word').value.trim()) {
    $('word').value = guess(files[0].name);
    $('word').dispatchEvent(new Event('input'));
  }
  const word = $('word').value.trim();
  if (!word) {
    row(list, '', 'Type the word that is said in them first.', 'bad');
    $('word').focus();
    return;
  }
  let kept = 0;
  for (const file of files.slice(0, MOST_FILES)) {
    const place = row(list, file.name, 'Listening…', 'busy');
    try {
      const {warnings} = await post('/api/learn', await decode(file), {word});
      kept++;
      place(warnings.length ? sentences('Kept.', warnings) : 'Kept', warnings.length ? 'bad' : 'good');
    } catch (error) {
      place(sentence(error.message), 'bad');
    }
  }
  if (files.length > MOST_FILES) row(list, '', `Only the first ${MOST_FILES} were taken.`, 'bad');
  row(list, '', `${count(kept, 'recording')} of ${quoted(word)} kept.`, kept ? 'good' : 'bad');
}

// lamp_3.wav -> lamp
const guess = name => name.replace(/\.[^.]*$/, '').replace(/[\s_-]*\d+$/, '').replace(/_/g, ' ').trim();

function row(list, name, text, kind) {
  const line = element('li', {});
  const update = (text, kind) => {
    line.className = kind;
    line.replaceChildren(icon({good: 'good', bad: 'warn', busy: 'wait'}[kind]),
      element('span', {}, ...(name ? [element('strong', {}, name), ' '] : []), text));
  };
  update(text, kind);
  list.append(line);
  return update;
}

async function decode(file) {
  if (file.size > MOST_BYTES) throw new Error('too large: cut it into clips of one word');
  let sound;
  try {
    // A context of this rate resamples what it decodes.
    sound = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(await file.arrayBuffer());
  } catch {
    throw new Error('not a recording that this browser can read');
  }
  if (sound.duration > LONGEST_S) {
    throw new Error(`${sound.duration.toFixed(0)} s long: cut it into clips of one word, ${LONGEST_S} s at most`);
  }
  const samples = new Int16Array(sound.length);
  const channels = Array.from({length: sound.numberOfChannels}, (_, i) => sound.getChannelData(i));
  for (let i = 0; i < samples.length; i++) {
    const mean = channels.reduce((sum, channel) => sum + channel[i], 0) / channels.length;
    samples[i] = Math.max(-32768, Math.min(32767, Math.round(mean * 32768)));
  }
  return samples;
}
