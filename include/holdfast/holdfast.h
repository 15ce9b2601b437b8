/* SPDX-License-Identifier: MIT */
#ifndef HOLDFAST_HOLDFAST_H
#define HOLDFAST_HOLDFAST_H

/* Everything the library offers. */
#include "alert.h"
#include "api.h"
#include "classify.h"
#include "dead.h"
#include "error.h"
#include "event.h"
#include "faults.h"
#include "forward.h"
#include "guard.h"
#include "http.h"
#include "job.h"
#include "ladder.h"
#include "log.h"
#include "measured.h"
#include "once.h"
#include "outbox.h"
#include "outcome.h"
#include "plugin.h"
#include "policy.h"
#include "queue.h"
#include "runner.h"
#include "simulate.h"
#include "store.h"
#include "units.h"
#include "version.h"
#include "work.h"

#endif
