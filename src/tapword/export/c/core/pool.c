/* Frames of one block -> its part of the vector. */
#include "internal.h"

/* Mean, standard deviation and standardised moments of numbers at a stride of `width`. */
static void tapword_moments(const float *x, size_t t, size_t width, size_t order, double *out)
{
    double first = (double)x[0], mean = 0.0, variance = 0.0, std;
    size_t i, r, p;
    for (i = 0; i < t; i++) {
        mean += (double)x[i * width] - first;
    }
    mean /= (double)t;
    for (i = 0; i < t; i++) {
        double z = (double)x[i * width] - first - mean;
        variance += z * z;
    }
    std = sqrt(variance / (double)t);
    if (std <= TAPWORD_CONSTANT * fabs(first + mean)) {
        std = 0.0;
    }
    out[0] = first + mean;
    for (r = 2; r <= order; r++) {
        double sum = 0.0;
        for (i = 0; r > 2 && std > 0.0 && i < t; i++) {
            double z = ((double)x[i * width] - first - mean) / std, power = z;
            for (p = 1; p < r; p++) {
                power *= z;
            }
            sum += power;
        }
        out[r - 1] = r == 2 ? std : sum / (double)t;
    }
}

TAPWORD_PRIVATE float *tapword_pool(const uint16_t *pooling, size_t width, const float *x, size_t t,
                                    float *out)
{
    size_t kind = pooling[0], order = pooling[1], second = pooling[2], j, i, r;
#if TAPWORD_HAS_ATTENTION
    if (kind == TAPWORD_ATTENTION) {
        return tapword_attention_pool(pooling, width, x, t, out);
    }
#endif
    if (kind == TAPWORD_MIDDLE) {
        for (i = 0; i < order; i++) {
            /* The frame (t - order) / 2 + i, rounded down; the first and last are repeated. */
            size_t place = (t + order) / 2 + i, frame = place > order ? place - order : 0;
            frame = frame < t ? frame : t - 1;
            if (second > 0 && t > second) {
                /* A clip of more than a second: the middle of each of `order` parts. */
                frame = (2 * i + 1) * t / (2 * order);
            }
            memcpy(out + i * width, x + frame * width, width * sizeof *out);
        }
        return out + order * width;
    }
    for (j = 0; j < width; j++) {
        if (kind == TAPWORD_LARGEST) {
            out[j] = x[j];
            for (i = 1; i < t; i++) {
                out[j] = x[i * width + j] > out[j] ? x[i * width + j] : out[j];
            }
        } else {
            double moments[TAPWORD_MOMENTS];
            size_t skipped = kind == TAPWORD_DEVIATION ? 1 : 0;
            tapword_moments(x + j, t, width, order, moments);
            for (r = skipped; r < order; r++) {
                out[(r - skipped) * width + j] = (float)moments[r];
            }
        }
    }
    return out + width * (kind == TAPWORD_MOMENT ? order : 1);
}
