/* The native side of org.tapword.Spotter. */
#define TAPWORD_IMPLEMENTATION
#define TAPWORD_SIMD
#include "home.h"

#include <jni.h>
#include <stdlib.h>

#define NATIVE(type, name) JNIEXPORT type JNICALL Java_org_tapword_Spotter_##name
#define EVENTS 8

typedef struct {
    tapword model;
    tapword_listener listener;
    float audio[TAPWORD_MAX_SAMPLES];
} spotter;

static spotter *of(jlong handle) { return (spotter *)(intptr_t)handle; }

static void fail(JNIEnv *env, int code)
{
    jclass kind = (*env)->FindClass(env, "java/lang/IllegalArgumentException");
    (*env)->ThrowNew(env, kind, tapword_error(code));
}

/* Convert samples from `first` on to floats. Returns their number, at most TAPWORD_MAX_SAMPLES. */
static size_t in_floats(JNIEnv *env, spotter *s, jshortArray samples, jsize first)
{
    jsize n = (*env)->GetArrayLength(env, samples) - first, i;
    jshort *given;
    n = n < TAPWORD_MAX_SAMPLES ? n : TAPWORD_MAX_SAMPLES;
    given = (*env)->GetShortArrayElements(env, samples, NULL);
    for (i = 0; given != NULL && i < n; i++) {
        s->audio[i] = (float)given[first + i] / 32768.0f;
    }
    if (given != NULL) {
        (*env)->ReleaseShortArrayElements(env, samples, given, JNI_ABORT);
    }
    return given == NULL ? 0 : (size_t)n;
}

/* Convert a whole recording. Returns its samples, or 0 with an exception if it is too long. */
static size_t recording(JNIEnv *env, spotter *s, jshortArray samples)
{
    if ((*env)->GetArrayLength(env, samples) > TAPWORD_MAX_SAMPLES) {
        fail(env, TAPWORD_BAD_AUDIO);
        return 0;
    }
    return in_floats(env, s, samples, 0);
}

/* Copy a name as UTF-8; one that is too long becomes empty, which the core refuses. Java's own
   UTF-8 differs for rare characters, which the core then refuses too. */
static void copy_name(JNIEnv *env, jstring word, char name[TAPWORD_NAME_BYTES])
{
    name[0] = '\0';
    if ((size_t)(*env)->GetStringUTFLength(env, word) < TAPWORD_NAME_BYTES) {
        (*env)->GetStringUTFRegion(env, word, 0, (*env)->GetStringLength(env, word), name);
    }
}

NATIVE(jlong, create)(JNIEnv *env, jclass class)
{
    spotter *s = malloc(sizeof *s);
    (void)env;
    (void)class;
    if (s != NULL) {
        tapword_start(&s->model);
        tapword_listener_start(&s->listener);
    }
    return (jlong)(intptr_t)s;
}

NATIVE(void, destroy)(JNIEnv *env, jclass class, jlong handle)
{
    (void)env;
    (void)class;
    free(of(handle));
}

NATIVE(jobjectArray, push)(JNIEnv *env, jclass class, jlong handle, jshortArray samples, jint n)
{
    spotter *s = of(handle);
    jclass kind = (*env)->FindClass(env, "org/tapword/Spotter$Event");
    jmethodID make = (*env)->GetMethodID(env, kind, "<init>", "(Ljava/lang/String;IDD)V");
    tapword_event events[EVENTS];
    jobjectArray found;
    jint first, i;
    int count = 0;
    (void)class;
    for (first = 0; first < n && count >= 0 && count < EVENTS; first += TAPWORD_MAX_SAMPLES) {
        size_t chunk = in_floats(env, s, samples, first);
        int more = tapword_listener_push(&s->model, &s->listener, s->audio, chunk, events + count,
                                         (size_t)(EVENTS - count));
        count = more < 0 ? more : count + more;
    }
    if (count < 0) {
        fail(env, count);
        return NULL;
    }
    found = (*env)->NewObjectArray(env, count, kind, NULL);
    for (i = 0; found != NULL && i < count; i++) {
        jstring word = (*env)->NewStringUTF(env, s->model.names[events[i].word]);
        jobject event = (*env)->NewObject(env, kind, make, word, (jint)events[i].confidence,
                                          events[i].start, events[i].end);
        (*env)->SetObjectArrayElement(env, found, i, event);
    }
    return found;
}

NATIVE(void, learn)(JNIEnv *env, jclass class, jlong handle, jshortArray samples, jstring word)
{
    spotter *s = of(handle);
    char name[TAPWORD_NAME_BYTES];
    size_t n = recording(env, s, samples);
    int learned;
    (void)class;
    if ((*env)->ExceptionCheck(env)) {
        return;
    }
    copy_name(env, word, name);
    learned = tapword_teach(&s->model, s->audio, n, name);
    if (learned < 0) {
        fail(env, learned);
    }
}

/* The name of a word by its number; NULL for none of the words, or with an exception. */
static jstring name_of(JNIEnv *env, const spotter *s, int word)
{
    if (word < 0) {
        if (word != TAPWORD_UNKNOWN) {
            fail(env, word);
        }
        return NULL;
    }
    return (*env)->NewStringUTF(env, s->model.names[word]);
}

NATIVE(jstring, predict)(JNIEnv *env, jclass class, jlong handle, jshortArray samples)
{
    spotter *s = of(handle);
    size_t n = recording(env, s, samples);
    (void)class;
    return (*env)->ExceptionCheck(env)
               ? NULL
               : name_of(env, s, tapword_predict(&s->model, s->audio, n, 1, NULL));
}

NATIVE(jstring, reject)(JNIEnv *env, jclass class, jlong handle, jshortArray samples)
{
    spotter *s = of(handle);
    size_t n = recording(env, s, samples);
    (void)class;
    return (*env)->ExceptionCheck(env) ? NULL
                                       : name_of(env, s, tapword_reject(&s->model, s->audio, n));
}

NATIVE(void, forget)(JNIEnv *env, jclass class, jlong handle, jstring word)
{
    char name[TAPWORD_NAME_BYTES];
    int error;
    (void)class;
    copy_name(env, word, name);
    error = tapword_forget(&of(handle)->model, name);
    if (error != 0) {
        fail(env, error);
    }
}

NATIVE(jbyteArray, save)(JNIEnv *env, jclass class, jlong handle)
{
    const tapword *model = &of(handle)->model;
    size_t n = tapword_saved_bytes(model);
    jbyteArray state = (*env)->NewByteArray(env, (jsize)n);
    uint8_t *bytes = malloc(n);
    (void)class;
    if (state != NULL && bytes != NULL) {
        tapword_save(model, bytes, n);
        (*env)->SetByteArrayRegion(env, state, 0, (jsize)n, (const jbyte *)bytes);
    }
    free(bytes);
    return state;
}

NATIVE(void, load)(JNIEnv *env, jclass class, jlong handle, jbyteArray state)
{
    jsize n = (*env)->GetArrayLength(env, state);
    jbyte *bytes = (*env)->GetByteArrayElements(env, state, NULL);
    int error;
    (void)class;
    if (bytes == NULL) {
        return;
    }
    error = tapword_load(&of(handle)->model, (const uint8_t *)bytes, (size_t)n);
    (*env)->ReleaseByteArrayElements(env, state, bytes, JNI_ABORT);
    if (error != 0) {
        fail(env, error);
    }
}
