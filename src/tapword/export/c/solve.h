/* Statistic -> weights: Cholesky's factors, block by block, in double. */

static int tapword_rule(tapword *t);
static double tapword_between_words(const tapword *t, size_t k);

/* Fill the factor's place with share * scatter, plus what the means add where the rule needs it. */
static void tapword_fill(tapword *t, const float *scatter, size_t n, double share)
{
    size_t p, i, j, k, all = n * (n + 1) / 2;
    for (p = 0; p < all; p++) {
        t->work.factor[p] = share * (double)scatter[p];
    }
    for (k = 0; k < t->words; k++) {
        double weight = tapword_between_words(t, k);
        for (j = 0, p = 0; weight > 0.0 && j < n; j++) {
            double scaled = weight * ((double)t->means[k][j] - t->centre[j]);
            for (i = j; i < n; i++) {
                t->work.factor[p++] += scaled * ((double)t->means[k][i] - t->centre[i]);
            }
        }
    }
}

static int tapword_cholesky(double *a, size_t n)
{
    size_t j, k, i, column = 0;
    for (j = 0; j < n; column += n - j, j++) {
        size_t target = column + n - j;
        if (!(a[column] > 0.0)) {
            return 0;
        }
        a[column] = sqrt(a[column]);
        for (i = 1; i < n - j; i++) {
            a[column + i] /= a[column];
        }
        for (k = 1; k < n - j; k++) {
            for (i = k; i < n - j; i++) {
                a[target++] -= a[column + i] * a[column + k];
            }
        }
    }
    return 1;
}

/* Factor of a block; where rounding left it indefinite its diagonal is raised a little. */
static int tapword_factor(tapword *t, const float *scatter, size_t first, size_t n, double share)
{
    static const double raises[] = {TAPWORD_RAISES};
    size_t attempt, j, p;
    for (attempt = 0; attempt < sizeof raises / sizeof raises[0]; attempt++) {
        tapword_fill(t, scatter, n, share);
        for (j = 0, p = 0; j < n; p += n - j, j++) {
            t->work.factor[p] += t->extra[first + j];
            t->work.factor[p] *= 1.0 + raises[attempt];
        }
        if (tapword_cholesky(t->work.factor, n)) {
            return 1;
        }
    }
    return 0;
}

static void tapword_solve_one(const double *a, size_t n, double *x)
{
    size_t j, i, column = 0;
    for (j = 0; j < n; column += n - j, j++) {
        x[j] /= a[column];
        for (i = 1; i < n - j; i++) {
            x[j + i] -= a[column + i] * x[j];
        }
    }
    for (j = n; j-- > 0;) {
        column -= n - j;
        for (i = 1; i < n - j; i++) {
            x[j] -= a[column + i] * x[j + i];
        }
        x[j] /= a[column];
    }
}

/* Solve (share * scatter + between words + diag(extra)) w_k = mean_k - centre for every word.
   factors get w_k.(mean_k - centre) and biases w_k.centre, of which the rule makes what scores are
   multiplied by and begin with. */
static int tapword_solve(tapword *t, double share)
{
    const float *scatter = t->scatter;
    size_t first, k, i;
    for (k = 0; k < t->words; k++) {
        t->factors[k] = t->biases[k] = 0.0;
    }
    for (first = 0; first < TAPWORD_DIM; first += TAPWORD_BLOCK) {
        size_t rest = TAPWORD_DIM - first, n = rest < TAPWORD_BLOCK ? rest : TAPWORD_BLOCK;
        if (!tapword_factor(t, scatter, first, n, share)) {
            return 0;
        }
        for (k = 0; k < t->words; k++) {
            const float *mean = t->means[k] + first;
            const double *centre = t->centre + first;
            for (i = 0; i < n; i++) {
                t->right[i] = (double)mean[i] - centre[i];
            }
            tapword_solve_one(t->work.factor, n, t->right);
            for (i = 0; i < n; i++) {
                t->factors[k] += t->right[i] * ((double)mean[i] - centre[i]);
                t->biases[k] += t->right[i] * centre[i];
                t->weights[k][first + i] = (float)t->right[i];
            }
        }
        scatter += n * (n + 1) / 2;
    }
    return 1;
}

#if TAPWORD_VARIANCES
/* Variance of each feature over all samples, within words and between, into extra. */
static void tapword_variances(tapword *t)
{
    double n = 0.0, samples = t->samples > 0 ? (double)t->samples : 1.0;
    size_t d, k, p = 0;
    for (k = 0; k < t->words; k++) {
        n += (double)t->counts[k];
    }
    n = n > 0.0 ? n : 1.0;
    for (d = 0; d < TAPWORD_DIM; d++) {
        size_t end = d / TAPWORD_BLOCK * TAPWORD_BLOCK + TAPWORD_BLOCK;
        double mean = 0.0, between = 0.0;
        for (k = 0; k < t->words; k++) {
            mean += (double)t->counts[k] * (double)t->means[k][d] / n;
        }
        for (k = 0; k < t->words; k++) {
            double e = (double)t->means[k][d] - mean;
            between += (double)t->counts[k] * e * e;
        }
        t->extra[d] = (double)t->scatter[p] / samples + between / n;
        p += (end < TAPWORD_DIM ? end : TAPWORD_DIM) - d;
    }
}
#endif

#if TAPWORD_WINDOWS
static float tapword_cosine(const float *x, const float *y)
{
    double product = 0.0, one = 0.0, other = 0.0;
    size_t d;
    for (d = 0; d < TAPWORD_DIM; d++) {
        product += (double)x[d] * (double)y[d];
        one += (double)x[d] * (double)x[d];
        other += (double)y[d] * (double)y[d];
    }
    return (float)(product / (sqrt(one * other) + 1e-24));
}

/* What the nearest windows of running speech take off a cosine: those of a second, or the longer
   ones behind them. */
static float tapword_level(const float *x, size_t length)
{
    int is_long = TAPWORD_LONG_WINDOWS > 0 && length > TAPWORD_CLIP;
    size_t row = is_long ? TAPWORD_WINDOWS : 0, d, i;
    size_t end = is_long ? TAPWORD_WINDOWS + TAPWORD_LONG_WINDOWS : TAPWORD_WINDOWS;
    float nearest[TAPWORD_NEAREST], sum = 0.0f;
    double squares = 0.0;
    for (d = 0; d < TAPWORD_DIM; d++) {
        squares += (double)x[d] * (double)x[d];
    }
    for (i = 0; i < TAPWORD_NEAREST; i++) {
        nearest[i] = -1.0f;
    }
    for (; row < end; row++) {
        float cosine = 0.0f;
        for (d = 0; d < TAPWORD_DIM; d++) {
            cosine += x[d] * (float)tapword_background[row][d];
        }
        cosine /= (float)sqrt(squares + 1e-24) * tapword_background_lengths[row];
        for (i = 0; i < TAPWORD_NEAREST; i++) {
            if (cosine > nearest[i]) {
                float other = nearest[i];
                nearest[i] = cosine;
                cosine = other;
            }
        }
    }
    for (i = 0; i < TAPWORD_NEAREST; i++) {
        sum += nearest[i];
    }
    return TAPWORD_SHARE * sum / (float)TAPWORD_NEAREST;
}

/* The best word's score becomes its cosine less that level; the others stay as far behind it. */
static void tapword_measure(const tapword *t, const float *vector, size_t length, float *scores)
{
    int best = tapword_decide(t, scores, 0);
    float more;
    size_t k;
    if (best < 0) {
        return;
    }
    more = tapword_cosine(vector, t->means[best]) - tapword_level(vector, length) - scores[best];
    for (k = 0; k < t->words; k++) {
        scores[k] += more;
    }
}
#endif

int tapword_scores(tapword *t, const float vector[TAPWORD_DIM], size_t length,
                   float scores[TAPWORD_MAX_WORDS])
{
    size_t k, d;
    if (!t->solved && t->words > 0 && !tapword_rule(t)) {
        return TAPWORD_DEPENDENT;
    }
    t->solved = 1;
    for (k = 0; k < t->words; k++) {
        double sum = 0.0;
        for (d = 0; d < TAPWORD_DIM; d++) {
            sum += (double)t->weights[k][d] * (double)vector[d];
        }
        scores[k] = (float)(t->biases[k] + t->factors[k] * sum);
    }
#if TAPWORD_WINDOWS
    tapword_measure(t, vector, length, scores);
#else
    (void)length;
#endif
    return 0;
}
