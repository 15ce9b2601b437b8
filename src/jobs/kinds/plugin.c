/* SPDX-License-Identifier: MIT */
/*
 * Handlers from shared objects: loads one by its absolute path, asks its entry what it is, and refuses what was made for
 * another version. Must never search a path, nor run anything of a plugin but its entry before a runner is made, nor
 * unload one. The thread that makes or frees the runner.
 */
#include "jobs/kinds/plugin.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"

#define ENTRY "hf_plugin_entry"

struct hfi_plugin {
    const struct hf_plugin *entry;
    void *user;
    _Atomic unsigned users; /* types that have it: of one name, in rulebooks that follow each other */
};

static int find_entry(const char *library, hf_plugin_entry_fn *entry, struct hf_error *error) {
    dlerror();
    void *object = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        const char *why = dlerror();
        return hfi_fail(error, HF_ECONFIG, library, "give a shared object for this machine, with all it needs", "%s",
                        why ? why : "it cannot be loaded");
    }
    void *symbol = dlsym(object, ENTRY);
    if (!symbol)
        return hfi_fail(error, HF_ECONFIG, library, "define " ENTRY ", see holdfast/plugin.h",
                        "it exports no " ENTRY ": it is no plugin");
    memcpy(entry, &symbol, sizeof *entry); /* POSIX says that this works; a cast would not be C */
    return 0;
}

int hfi_plugin_load(const char *library, const struct hf_plugin **plugin, struct hf_error *error) {
    hf_plugin_entry_fn entry = NULL;
    struct stat about;
    *plugin = NULL;
    if (library[0] != '/')
        return hfi_fail(error, HF_EINVAL, library, "no path is searched", "the library is not an absolute path");
    if (stat(library, &about) == 0 && !S_ISREG(about.st_mode))
        return hfi_fail(error, HF_ECONFIG, library, "name the shared object", "it is no file");
    int code = find_entry(library, &entry, error);
    if (code != 0)
        return code;
    const struct hf_plugin *found = entry(HF_PLUGIN_VERSION);
    if (!found)
        return hfi_fail(error, HF_ECONFIG, library, "install one that was made for it",
                        "the plugin cannot work with version %d of the host", HF_PLUGIN_VERSION);
    if (found->version != HF_PLUGIN_VERSION)
        return hfi_fail(error, HF_ECONFIG, library, "compile it against this version of holdfast",
                        "the plugin has version %" PRIu32 ", the host %d", found->version, HF_PLUGIN_VERSION);
    if (!found->run)
        return hfi_fail(error, HF_ECONFIG, library, "set `run`", "the plugin has no handler");
    *plugin = found;
    return 0;
}

static void give(struct hfi_type *type, struct hfi_plugin *plugin) {
    type->handler = plugin->entry->run;
    type->user = plugin->user;
    type->plugin = plugin;
}

bool hfi_plugin_share(struct hfi_type *type, const struct hfi_type *before) {
    if (!before || !before->plugin || type->options.isolate == HF_ISOLATE_PROCESS ||
        strcmp(before->options.library, type->options.library) != 0)
        return false;
    atomic_fetch_add(&before->plugin->users, 1);
    give(type, before->plugin);
    return true;
}

int hfi_plugin_use(struct hfi_type *type, struct hf_error *error) {
    const char *library = type->options.library;
    const struct hf_plugin *entry;
    struct stat about;
    int code = hfi_plugin_load(library, &entry, error);
    if (code != 0)
        return code;
    if (stat(library, &about) == 0 && (about.st_mode & S_IWOTH))
        hfi_log(HF_LOG_WARNING, "plugin.writable", HFI_S("library", library), HFI_S("type", type->options.name),
                HFI_S("fix", "chmod o-w: anybody here could put code into this process"), NULL);
    if (type->options.isolate == HF_ISOLATE_PROCESS)
        return 0;
    struct hfi_plugin *plugin = hfi_alloc(sizeof *plugin);
    if (!plugin)
        return hfi_fail(error, HF_ENOMEM, library, NULL, NULL);
    plugin->entry = entry;
    plugin->user = entry->user;
    struct hf_error details;
    hf_error_init(&details);
    code = entry->init ? entry->init(type->options.name, &plugin->user, &details) : 0;
    if (code != 0) {
        hfi_free(plugin);
        return hfi_fail(error, code < 0 ? code : HF_ECONFIG, library, details.fix, "type %s: its init failed: %s",
                        type->options.name, details.why[0] ? details.why : "it does not say why");
    }
    plugin->users = 1;
    give(type, plugin);
    return 0;
}

void hfi_plugin_leave(struct hfi_type *type) {
    struct hfi_plugin *plugin = type->plugin;
    type->plugin = NULL;
    if (!plugin || atomic_fetch_sub(&plugin->users, 1) > 1)
        return;
    if (plugin->entry->end)
        plugin->entry->end(plugin->user);
    hfi_free(plugin);
}

int hf_type_check(const struct hf_type_options *given, struct hf_error *error) {
    struct hf_type_options options;
    struct hfi_keep keep = {NULL};
    bool native = given && given->size >= offsetof(struct hf_type_options, name) && given->kind == HF_KIND_NATIVE;
    int code = hfi_type_options_copy(&keep, given, native, &options, error);
    const struct hf_plugin *plugin;
    if (code == 0 && options.kind == HF_KIND_PLUGIN)
        code = hfi_plugin_load(options.library, &plugin, error);
    hfi_keep_free(&keep);
    return code;
}
