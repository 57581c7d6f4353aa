/** A React hook: teach words and hear them in a component. */
import {useCallback, useEffect, useRef, useState} from 'react';
import {Tapword, record} from '@tapword/core';

const TAKE_S = 3;

/**
 * Listen while the component is shown and `stream` is a microphone, or null for none yet.
 *
 * @param {MediaStream | null} stream
 * @param {(event: {word: string, confidence: number}) => void} onWord
 * @returns what is known: the words, whether it is loading or recording, a problem or '', and
 *   functions that teach, forget and save
 */
export function useTapword(stream, onWord) {
  const [words, setWords] = useState([]);
  const [state, setState] = useState('loading');
  const [problem, setProblem] = useState('');
  const spotter = useRef(null);
  const latest = useRef(onWord);
  // The newest callback, without listening again.
  latest.current = onWord;

  const run = useCallback(async (busy, action) => {
    setProblem('');
    setState(busy);
    try {
      return await action(spotter.current);
    } catch (error) {
      setProblem(error.message);
      return undefined;
    } finally {
      if (spotter.current) setWords(await spotter.current.words());
      setState(spotter.current ? 'ready' : 'failed');
    }
  }, []);

  useEffect(() => {
    run('loading', async () => { spotter.current = await Tapword.load(); });
  }, [run]);

  useEffect(() => {
    if (!stream || state !== 'ready') return undefined;
    const listening = spotter.current.listen(
      stream, event => latest.current(event), error => setProblem(error.message));
    return () => { listening.then(one => one.stop(), error => setProblem(error.message)); };
  }, [stream, state]);

  return {
    words, state, problem,
    teach: useCallback(word => run('recording', async core => {
      await core.learn(await record(stream, TAKE_S), word);
    }), [run, stream]),
    forget: useCallback(word => run('forgetting', core => core.forget(word)), [run]),
    save: useCallback(() => run('saving', core => core.save()), [run]),
  };
}
