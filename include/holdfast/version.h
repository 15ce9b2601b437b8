/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_VERSION_H
#define HOLDFAST_VERSION_H

#include "api.h"

#define HF_VERSION_MAJOR 0
#define HF_VERSION_MINOR 1
#define HF_VERSION_PATCH 0
#define HF_VERSION_TEXT "0.1.0"

HF_BEGIN

/* The version of the library in use, which may be newer than these macros. Static text. Since 0.1. */
HF_API const char *hf_version(void);

HF_END

#endif
