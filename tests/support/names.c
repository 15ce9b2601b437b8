/* SPDX-License-Identifier: MIT */
/* getaddrinfo of a test program, in place of libc's: hangs, fails or answers by the name alone. Any thread. */
#include "support/names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HANG_S 60 /* a test that never lets go must end too */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool let_go;
static unsigned lookups, inside, living; /* living: resolver threads that came here and have not ended */
static pthread_key_t mark; /* of such a thread; its end runs thread_ended, after all that libcurl does in it */

static void thread_ended(void *value) {
    (void)value;
    pthread_mutex_lock(&lock);
    living--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints, struct addrinfo **list) {
    (void)hints;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANG_S;
    pthread_mutex_lock(&lock);
    lookups++;
    inside++;
    if (!pthread_getspecific(mark) && pthread_setspecific(mark, &living) == 0)
        living++;
    pthread_cond_broadcast(&changed);
    while (strncmp(name, "slow", 4) == 0 && !let_go)
        if (pthread_cond_timedwait(&changed, &lock, &until))
            break;
    inside--;
    pthread_mutex_unlock(&lock);
    if (strncmp(name, "bad", 3) == 0)
        return EAI_NONAME;
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_in));
    struct sockaddr_in *address = (struct sockaddr_in *)(info + 1);
    address->sin_family = AF_INET;
    address->sin_port = htons((uint16_t)(service ? atoi(service) : 0));
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    info->ai_family = AF_INET;
    info->ai_socktype = SOCK_STREAM;
    info->ai_protocol = IPPROTO_TCP;
    info->ai_addr = (struct sockaddr *)address;
    info->ai_addrlen = sizeof *address;
    *list = info;
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    free(list);
}

static unsigned read_counter(const unsigned *counter) {
    pthread_mutex_lock(&lock);
    unsigned value = *counter;
    pthread_mutex_unlock(&lock);
    return value;
}

int names_start(void) {
    return pthread_key_create(&mark, thread_ended);
}

void names_hang(void) {
    pthread_mutex_lock(&lock);
    let_go = false;
    lookups = 0;
    pthread_mutex_unlock(&lock);
}

void names_let_go(void) {
    pthread_mutex_lock(&lock);
    let_go = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void names_wait(void) {
    pthread_mutex_lock(&lock);
    while (living > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

unsigned names_count(void) {
    return read_counter(&lookups);
}

unsigned names_inside(void) {
    return read_counter(&inside);
}
