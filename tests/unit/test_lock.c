/* SPDX-License-Identifier: MIT */
/* The small mutex: nobody gets in beside another, nobody sleeps for ever, errno stays. Also run under ThreadSanitizer. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/lock.h"

enum { THREADS = 12, EACH = 20000 };
static struct hfi_lock lock;
static int plain, inside, wrong; /* guarded by it: ThreadSanitizer would tell */
static _Atomic int errors;

static void *add_many(void *user) {
    errno = 4711;
    for (int i = 0; i < EACH; i++) {
        hfi_lock(&lock);
        wrong += inside++ != 0;
        plain++;
        if (i % 64 == (int)(intptr_t)user)
            sched_yield(); /* let others find it held, and go to sleep */
        inside--;
        hfi_unlock(&lock);
    }
    if (errno != 4711)
        atomic_fetch_add(&errors, 1);
    return NULL;
}

static void one_at_a_time(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(plain, THREADS * EACH);
    assert_int_equal(wrong, 0);
    assert_int_equal(atomic_load(&errors), 0);
    assert_int_equal(atomic_load(&lock.state), 0);
}

static void takes_four_bytes(void **state) {
    (void)state;
    struct hfi_lock alone = {0};
    assert_int_equal(sizeof alone, 4);
    hfi_lock(&alone);
    assert_int_equal(atomic_load(&alone.state), 1);
    hfi_unlock(&alone);
    assert_int_equal(atomic_load(&alone.state), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_at_a_time), cmocka_unit_test(takes_four_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
