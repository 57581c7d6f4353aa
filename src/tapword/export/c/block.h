/* A block of the ear: channels that come in, inside and that go out; bands that come in; bands and
   steps that a look covers, and from one to the next; whether the input is added, and whether it
   waits for that. */
typedef struct {
    uint16_t in, wide, out, bands, taps, steps, band_step, time_step, adds, ahead;
} tapword_block;

