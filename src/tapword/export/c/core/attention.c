/* Attentive statistics pooling: mean and deviation of a word, and attention heads. The last numbers
   of a frame are the heads' logits. */
#include "internal.h"

#if TAPWORD_HAS_ATTENTION
/* How much of a frame is inside the word. */
static float tapword_inside(size_t frame, double first, double last)
{
    double begin = (double)frame > first ? (double)frame : first;
    double end = (double)frame + 1.0 < last ? (double)frame + 1.0 : last;
    return end > begin ? (float)((end - begin) / (last - first)) : 0.0f;
}

/* Logit of a head for a frame at a relative position in the word. */
static float tapword_logit(float logit, double center, double width, double position)
{
    double far = (position - center) / width;
    return logit - (float)(far * far) / 2.0f;
}

TAPWORD_PRIVATE float *tapword_attention_pool(const uint16_t *pooling, size_t width, const float *x,
                                              size_t t, float *out)
{
    size_t heads = pooling[1], second = pooling[2], d = width - heads, head, i, j;
    const float *centers = tapword_head_centers + pooling[3];
    const float *widths = tapword_head_widths + pooling[3];
    double word = (double)t, first;
    float *mean = out, *deviation = out + d;
    int phrase = second > 0 && t > second;
    if (phrase) {
        word -= 2.0 * TAPWORD_ATTENTION_MARGIN_S * (double)second;
    } else if (second > 0 && word > TAPWORD_ATTENTION_WORD * (double)second) {
        word = TAPWORD_ATTENTION_WORD * (double)second;
    }
    first = ((double)t - word) / 2.0;
    memset(out, 0, (2 + heads) * d * sizeof *out);
    for (i = 0; i < t; i++) {
        float inside = tapword_inside(i, first, first + word);
        for (j = 0; j < d; j++) {
            mean[j] += inside * (x[i * width + j] - x[j]);
        }
    }
    for (i = 0; i < t; i++) {
        float inside = tapword_inside(i, first, first + word);
        for (j = 0; j < d; j++) {
            float deviates = x[i * width + j] - x[j] - mean[j];
            deviation[j] += inside * deviates * deviates;
        }
    }
    for (j = 0; j < d; j++) {
        deviation[j] = sqrtf(deviation[j] + TAPWORD_ATTENTION_MIN_VARIANCE);
        mean[j] += x[j];
    }
    out += 2 * d;
    for (head = 0; head < heads; head++, out += d) {
        /* Heads are spread evenly over a phrase, without logits. */
        double center = phrase ? ((double)head + 0.5) / (double)heads : (double)centers[head];
        double spread = phrase ? 0.5 / (double)heads : (double)widths[head];
        const float *logits = x + d + head;
        float most = -FLT_MAX, sum = 0.0f;
        for (i = 0; i < t; i++) {
            double position = ((double)i + 0.5 - first) / word;
            float logit = phrase ? 0.0f : logits[i * width];
            logit = tapword_logit(logit, center, spread, position);
            most = logit > most ? logit : most;
        }
        for (i = 0; i < t; i++) {
            double position = ((double)i + 0.5 - first) / word;
            float logit = phrase ? 0.0f : logits[i * width];
            logit = tapword_logit(logit, center, spread, position);
            float weight = expf(logit - most);
            sum += weight;
            for (j = 0; j < d; j++) {
                out[j] += weight * x[i * width + j];
            }
        }
        for (j = 0; j < d; j++) {
            out[j] /= sum;
        }
    }
    return out;
}
#endif
