/** Samples at 16 kHz, floats in [-1, 1] or of 16 bits; or a buffer of any rate. */
export type Sound = Float32Array | Int16Array | AudioBuffer;

export interface Word {
  word: string;
  /** Takes it was taught. */
  count: number;
  /** Sounds that were taught as not this word. */
  negatives: number;
  /** From 0 to 1, how readily it is heard. */
  sensitivity: number;
  /** The score from which it counts as said. */
  threshold: number;
}

export interface Prediction {
  /** The word that was said; null where none of them was. */
  word: string | null;
  /** Of the nearest word; null where none is known. */
  score: number | null;
  /** How sure, from 0 to 100: of the word, or of the nearest one if it is null. Said from 50 on. */
  confidence: number | null;
}

/** What may be wrong with a clip; the codes are those of Python's `tapword.support.issues`. */
export interface Issue {
  code: string;
  /** Do not teach it; ask before teaching it; or just report it. */
  severity: 'refuse' | 'doubt' | 'note';
  params: Record<string, string | number>;
}

export interface Take {
  /** What is wrong with it, or null. */
  issue: Issue | null;
  /** The speech with a margin; empty if there is none. */
  audio: Sound;
  /** Seconds; both 0 if there is no speech. */
  start_s: number;
  end_s: number;
  level_db: number;
  snr_db: number;
}

/** A sound in a recording of one word. */
export interface FoundSound {
  /** The sound with a margin. */
  audio: Sound;
  /** Where that begins in the recording, in samples. */
  first: number;
  /** Where the sound itself starts in it. */
  start_s: number;
  /** Whether it is a take of the word; false if it is unlike the other sounds. */
  is_take: boolean;
}

export interface WordEvent {
  word: string;
  score: number;
  /** How sure, from 50 to 100. */
  confidence: number;
  /** Seconds since the stream began. */
  start: number;
  end: number;
}

export interface Listening {
  stop(): Promise<void>;
}

export const RATE: 16000;

/** What the core refuses: `code` is the name of the C code, the message a plain sentence. */
export class TapwordError extends Error {
  readonly code: string;
}

/** So many seconds of what is to be learned or asked. */
export function record(source: MediaStream | AudioNode, seconds: number): Promise<Int16Array>;

export class Tapword {
  private constructor();

  /** From tapword.wasm: its address, its bytes or a module; the one beside index.js by default. */
  static load(source?: string | URL | BufferSource | WebAssembly.Module): Promise<Tapword>;

  /** Learn a clip of a word, known or new; a clip of noise only with `anyway`. The clip is not kept. */
  learn(audio: Sound, word: string, options?: {anyway?: boolean}): Promise<void>;
  /** Learn that a clip is none of the words; the word that it was nearest to, or null. */
  reject(audio: Sound): Promise<string | null>;
  /** The word that is said in a clip; with `closed`, the nearest one whatever was said. */
  predict(audio: Sound, options?: {closed?: boolean}): Promise<Prediction>;
  /** Word -> its score in a clip. */
  scores(audio: Sound): Promise<Record<string, number>>;
  /** How readily words that are still to come will be heard. */
  sensitivity(): Promise<number>;
  /** From 0 to 1: hear a word more readily or less; all of them where it is null. */
  setSensitivity(word: string | null, value: number): Promise<void>;
  /** Listen until `stop` is called, or `listen` again. Without `onError`, what goes wrong is thrown. */
  listen(
    source: MediaStream | AudioNode,
    onEvent: (event: WordEvent) => void,
    onError?: (error: Error) => void,
  ): Promise<Listening>;
  /** Remove a word and its negatives. */
  forget(word: string): Promise<void>;
  /** Call a word otherwise, by a name that no other word has. */
  rename(word: string, now: string): Promise<void>;
  words(): Promise<Word[]>;
  /** What was taught, as bytes that `load`, a device and `tapword import` read. */
  save(): Promise<Uint8Array>;
  /** Take over what was saved in the place of all words; where it cannot be read, these stay. */
  load(bytes: Uint8Array | ArrayBuffer): Promise<void>;

  /** Start a stream; push its samples, any number of them. */
  startStream(): Promise<void>;
  push(chunk: Float32Array | Int16Array): Promise<WordEvent[]>;
  /** Report that samples of the stream were lost. */
  gap(samples: number): Promise<void>;
  /** Word -> its score in the last `push`; null if nothing was scored. */
  streamScores(): Promise<Record<string, number> | null>;
  /** End the stream; returns its last events. */
  flush(): Promise<WordEvent[]>;

  /** Start a recording of one word; push its samples until it is 'over', or 'nobody' spoke. */
  startRecording(): Promise<void>;
  pushRecording(chunk: Float32Array | Int16Array): Promise<'waiting' | 'speaking' | 'over' | 'nobody'>;
  /** Find the one word in a recording of at most 10 s. */
  examine(audio: Sound): Promise<Take>;
  /** Find several takes of one word in a recording of at most 60 s; empty if there are none. */
  findTakes(audio: Sound): Promise<FoundSound[]>;
  /** Check a clip of a word before it is taught. */
  check(audio: Sound, word: string, kind?: 'take' | 'file'): Promise<Issue[]>;
  /** Compare the clip that was checked last, and those accepted before it, with other words. */
  accept(word: string): Promise<Issue[]>;

  /** Let go of the thread and all that is in it; whatever is asked after that is refused. */
  close(): void;
}
