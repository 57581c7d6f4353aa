/* A plugin for QEMU that counts instructions and writes their number to the file "count".

   Declared here is what qemu/qemu-plugin.h declares of it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

typedef uint64_t plugin_id;
struct block;
typedef struct about about;
typedef void (*block_callback)(plugin_id, struct block *);
typedef void (*exit_callback)(plugin_id, void *);
void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id, block_callback);
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(plugin_id, exit_callback, void *);
size_t qemu_plugin_tb_n_insns(const struct block *);
int qemu_plugin_install(plugin_id id, const about *machine, int argc, char **argv);

int qemu_plugin_version = 1;
static uint64_t count;

static void translated(plugin_id id, struct block *block)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &count, qemu_plugin_tb_n_insns(block));
}

static void done(plugin_id id, void *data)
{
    FILE *file = fopen("count", "w");
    (void)id;
    (void)data;
    if (file != NULL) {
        fprintf(file, "%" PRIu64, count);
        fclose(file);
    }
}

int qemu_plugin_install(plugin_id id, const about *machine, int argc, char **argv)
{
    (void)machine;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, done, NULL);
    return 0;
}
