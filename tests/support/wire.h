/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_WIRE_H
#define TESTS_SUPPORT_WIRE_H

#include "holdfast/http.h"
#include "support/peer.h"

/*
 * One way in which a peer misbehaves, and what hf_call must say about it, run as GET, POST and POST with a key, each
 * without and with two short retries. Whatever the way: the requests seen by the server are the attempts reported, and
 * a POST without a key is never seen twice.
 */
enum wire_peer { WIRE_LISTENS, WIRE_REFUSES, WIRE_FULL /* its backlog is full: a connect is never answered */ };
enum wire_kind { WIRE_GET = 1, WIRE_POST = 2, WIRE_KEY = 4, WIRE_ALL = 7, WIRE_BODY = 6 };
struct wire_case {
    const char *name;
    struct peer_step step; /* for every request */
    const char *type;      /* of an attempt that saw the step; "": a success */
    enum hf_class klass;
    enum hf_verdict verdict;
    enum hf_retry retry;
    enum hf_stage stage;
    enum hf_sent sent;
    bool unread; /* the server reads nothing of it: attempts are made, no request is seen */
    /* The common ones are 0: */
    enum wire_peer peer;
    unsigned kinds;     /* of enum wire_kind; 0: all */
    const char *method; /* instead of GET */
    bool tls;           /* https */
    bool compressed;    /* the downstream takes compressed answers */
    bool warm;          /* after a good answer, on its connection */
    const char *poke;   /* … on which this came meanwhile, unasked … */
    bool poke_closes;   /* … and which is closed then */
    bool recovers;      /* the step is for the first attempt only: the others get a good answer */
    bool races;         /* it may come before the request or after it: how far an attempt came is not looked at */
    size_t body;        /* length of a POST's; 0: 3 */
    int64_t total_ms;   /* of the call; 0: the policy's */
};

/*
 * Runs the cases, all at once or one by one. A limit may pass only where the case says so: `limit_ms` for connecting
 * and for an attempt. Prints what differs and returns how much did.
 */
unsigned wire_run(const struct wire_case *cases, size_t count, bool at_once, int64_t limit_ms);

#endif
