package org.tapword;

/**
 * A spotter that keeps learning, in native code. Audio is mono, 16 bits, at 16 kHz. Use an object
 * from one thread at a time.
 */
public final class Spotter implements AutoCloseable {
    static {
        System.loadLibrary("tapword");
    }

    /** A word that was said: how sure that is, from 50 to 100, and its times in the stream. */
    public record Event(String word, int confidence, double startSeconds, double endSeconds) {}

    private long handle = create();

    /** Push the next samples of a stream; returns the words in them. */
    public Event[] push(short[] samples) {
        return push(handle(), samples, samples.length);
    }

    /** Learn a recording of a word, of up to 5 s. */
    public void learn(short[] samples, String word) {
        learn(handle(), samples, word);
    }

    /** The word in a recording, or null if it is none. */
    public String predict(short[] samples) {
        return predict(handle(), samples);
    }

    /** Learn that a recording has none of the words; returns the word it was nearest to. */
    public String reject(short[] samples) {
        return reject(handle(), samples);
    }

    /** Forget a word. */
    public void forget(String word) {
        forget(handle(), word);
    }

    /** What was learned, for {@link #load} and {@code tapword import}. */
    public byte[] save() {
        return save(handle());
    }

    /** Replace all that was learned. */
    public void load(byte[] state) {
        load(handle(), state);
    }

    @Override
    public void close() {
        if (handle != 0) {
            destroy(handle);
            handle = 0;
        }
    }

    private long handle() {
        if (handle == 0) {
            throw new IllegalStateException("the spotter is closed");
        }
        return handle;
    }

    private static native long create();

    private static native void destroy(long handle);

    private static native Event[] push(long handle, short[] samples, int n);

    private static native void learn(long handle, short[] samples, String word);

    private static native String predict(long handle, short[] samples);

    private static native String reject(long handle, short[] samples);

    private static native void forget(long handle, String word);

    private static native byte[] save(long handle);

    private static native void load(long handle, byte[] state);
}
