/* SPDX-License-Identifier: MIT */
#ifndef HFI_BASE_PATH_H
#define HFI_BASE_PATH_H

#include <stdbool.h>

/*
 * Do both paths name one file, by whatever links? A file that is not there yet is known by its folder and its name.
 * Looks at the disk. Any thread.
 */
bool hfi_path_same(const char *one, const char *other);

#endif
