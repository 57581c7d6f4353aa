/* Frames -> vector. */

/* Mean, standard deviation and standardised moments of numbers that lie `width` apart. */
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

static float *tapword_pool(const uint16_t *pooling, size_t width, const float *x, size_t t,
                           float *out)
{
    size_t kind = pooling[0], order = pooling[1], second = pooling[2], j, i, r;
    if (kind == TAPWORD_MIDDLE) {
        for (i = 0; i < order; i++) {
            /* The frame (t - order) / 2 + i, rounded downwards; the first and last are repeated. */
            size_t place = (t + order) / 2 + i, frame = place > order ? place - order : 0;
            frame = frame < t ? frame : t - 1;
            if (second > 0 && t > second) {
                /* A clip of more frames than a second: the middle of each of `order` parts. */
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

#if TAPWORD_WHITENING
/* A number of 16 bits as a float, exactly. */
static float tapword_half(uint16_t half)
{
    uint32_t exponent = half >> 10 & 31u, fraction = half & 1023u, bits;
    float value;
    if (exponent == 0) {
        value = (float)fraction * (1.0f / 16777216.0f);
    } else {
        bits = (exponent + 112u) << 23 | fraction << 13;
        memcpy(&value, &bits, sizeof value);
    }
    return half & 32768u ? -value : value;
}

/* Centre, whiten block by block, scale every group to one length. */
static void tapword_whiten(float *vector)
{
    const uint16_t *map = tapword_maps;
    size_t group, first = 0, row, i, j;
    for (group = 0; group < TAPWORD_GROUPS; group++) {
        size_t end = first + tapword_groups[group];
        double squares = 0.0;
        float scale;
        for (row = first; row < end; row += TAPWORD_WHITENING_BLOCK) {
            float centred[TAPWORD_WHITENING_BLOCK];
            size_t n = end - row < TAPWORD_WHITENING_BLOCK ? end - row : TAPWORD_WHITENING_BLOCK;
            for (i = 0; i < n; i++) {
                centred[i] = vector[row + i] - tapword_whitening_mean[row + i];
                vector[row + i] = 0.0f;
            }
            for (i = 0; i < n; i++) {
                for (j = i; j < n; j++) {
                    vector[row + j] += centred[i] * tapword_half(*map++);
                }
            }
        }
        for (i = first; i < end; i++) {
            squares += (double)vector[i] * (double)vector[i];
        }
        scale = TAPWORD_WHITENING_WEIGHT / (float)(squares > 1e-12 ? sqrt(squares) : 1e-6);
        for (i = first; i < end; i++) {
            vector[i] *= scale;
        }
        first = end;
    }
}
#endif

void tapword_vector(const float *const frames[TAPWORD_BLOCKS], const size_t counts[TAPWORD_BLOCKS],
                    float vector[TAPWORD_DIM])
{
    float *out = vector;
    size_t b;
    for (b = 0; b < TAPWORD_BLOCKS; b++) {
        out = tapword_pool(tapword_poolings[b], tapword_widths[b], frames[b], counts[b], out);
    }
#if TAPWORD_WHITENING
    tapword_whiten(vector);
#endif
}
