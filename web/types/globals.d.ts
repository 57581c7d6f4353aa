// Names that the pages find at run time.

// Of an AudioWorklet, which TypeScript has no library for.
declare const sampleRate: number;
declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: typeof AudioWorkletProcessor): void;

// Written above site/try/offline.js by web/build.py.
declare const VERSION: string;
declare const FILES: string[];
