/* What a Cortex-M does after a reset, before main. The emulator has loaded all sections already. */
#include <stdint.h>
#include <stdlib.h>

extern void initialise_monitor_handles(void); /* newlib's files, by the emulator */
extern int main(void);

static void reset(void)
{
    *(volatile uint32_t *)0xe000ed88 |= 0xf00000; /* floating point and vectors on */
    __asm__ volatile("dsb\n isb");
    initialise_monitor_handles();
    exit(main());
}

/* The first stack pointer, and where to begin. */
__attribute__((section(".vectors"), used)) static const uintptr_t vectors[256] = {STACK,
                                                                                  (uintptr_t)reset};
