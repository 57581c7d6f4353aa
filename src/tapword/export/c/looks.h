/* Mean and deviation of a word, and looks at it: where to look, the last numbers of a frame say. */

/* How much of a frame lies inside the word. */
static float tapword_inside(size_t frame, double first, double last)
{
    double begin = (double)frame > first ? (double)frame : first;
    double end = (double)frame + 1.0 < last ? (double)frame + 1.0 : last;
    return end > begin ? (float)((end - begin) / (last - first)) : 0.0f;
}

/* How much a look is drawn to a frame that lies at a share of the word. */
static float tapword_draw(float draw, double place, double reach, double share)
{
    double far = (share - place) / reach;
    return draw - (float)(far * far) / 2.0f;
}

static float *tapword_looks(const uint16_t *pooling, size_t width, const float *x, size_t t,
                            float *out)
{
    size_t looks = pooling[1], second = pooling[2], d = width - looks, look, i, j;
    const float *places = tapword_places + pooling[3], *reaches = tapword_reaches + pooling[3];
    double word = (double)t, first;
    float *mean = out, *deviation = out + d;
    int phrase = second > 0 && t > second;
    if (phrase) {
        word -= 2.0 * TAPWORD_LOOK_MARGIN * (double)second;
    } else if (second > 0 && word > TAPWORD_LOOK_WORD * (double)second) {
        word = TAPWORD_LOOK_WORD * (double)second;
    }
    first = ((double)t - word) / 2.0;
    memset(out, 0, (2 + looks) * d * sizeof *out);
    for (i = 0; i < t; i++) {
        float inside = tapword_inside(i, first, first + word);
        for (j = 0; j < d; j++) {
            mean[j] += inside * (x[i * width + j] - x[j]);
        }
    }
    for (i = 0; i < t; i++) {
        float inside = tapword_inside(i, first, first + word);
        for (j = 0; j < d; j++) {
            float apart = x[i * width + j] - x[j] - mean[j];
            deviation[j] += inside * apart * apart;
        }
    }
    for (j = 0; j < d; j++) {
        deviation[j] = sqrtf(deviation[j] + TAPWORD_LOOK_SMALLEST);
        mean[j] += x[j];
    }
    out += 2 * d;
    for (look = 0; look < looks; look++, out += d) {
        /* Looks at a phrase lie evenly, and nothing draws them. */
        double place = phrase ? ((double)look + 0.5) / (double)looks : (double)places[look];
        double reach = phrase ? 0.5 / (double)looks : (double)reaches[look];
        const float *draws = x + d + look;
        float most = -FLT_MAX, sum = 0.0f;
        for (i = 0; i < t; i++) {
            double share = ((double)i + 0.5 - first) / word;
            float draw = tapword_draw(phrase ? 0.0f : draws[i * width], place, reach, share);
            most = draw > most ? draw : most;
        }
        for (i = 0; i < t; i++) {
            double share = ((double)i + 0.5 - first) / word;
            float draw = tapword_draw(phrase ? 0.0f : draws[i * width], place, reach, share);
            float weight = expf(draw - most);
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
