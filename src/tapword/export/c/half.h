/* A number of 16 bits as a float, exactly: it lacks 112 in the exponent. */
static float tapword_half(uint16_t half)
{
    uint32_t bits = (half & 32768u) << 16 | (half & 32767u) << 13;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value * 5.192296858534828e33f; /* 2 to the power of 112 */
}
