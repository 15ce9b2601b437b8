/* SPDX-License-Identifier: MIT */
/* Runs tls_peers.py and asks it what its servers saw; calls them and copies how that ended. The main thread's. */
#include "support/tls_peers.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/support.h"

#define PEERS_MAX 64

static struct {
    char name[32];
    int port;
} peers[PEERS_MAX];
static size_t peer_count;
static pid_t child;
static FILE *to, *from;
static char folder[] = "/tmp/holdfast-tls-XXXXXX";

static void run_child(const char *script, const int *in, const int *out) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    execlp("python3", "python3", "-W", "ignore", script, folder, (char *)NULL);
    _exit(127);
}

int tls_peers_start(const char *script) {
    char line[64];
    int in[2], out[2];
    if (!mkdtemp(folder) || pipe(in) || pipe(out))
        return -1;
    child = fork();
    if (child == 0) {
        close(in[1]);
        close(out[0]);
        run_child(script, in, out);
    }
    close(in[0]);
    close(out[1]);
    to = fdopen(in[1], "w");
    from = fdopen(out[0], "r");
    while (child > 0 && fgets(line, sizeof line, from)) {
        if (strcmp(line, "ready\n") == 0)
            return 0;
        if (peer_count < PEERS_MAX && sscanf(line, "%31s %d", peers[peer_count].name, &peers[peer_count].port) == 2)
            peer_count++;
    }
    return -1;
}

void tls_peers_stop(void) {
    char command[128];
    fclose(to); /* that ends it */
    fclose(from);
    waitpid(child, NULL, 0);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command))
        fprintf(stderr, "%s stays\n", folder);
}

int tls_peers_port(const char *name) {
    for (size_t i = 0; i < peer_count; i++)
        if (strcmp(peers[i].name, name) == 0)
            return peers[i].port;
    fail_msg("there is no peer %s", name);
    return 0;
}

const char *tls_peers_file(const char *name) {
    static char path[2][160];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static void ask(const char *what, const char *name, char *line, int room) {
    fprintf(to, "%s %s\n", what, name);
    fflush(to);
    assert_non_null(fgets(line, room, from));
}

struct tls_peers_count tls_peers_count(const char *name) {
    struct tls_peers_count count;
    char line[64];
    ask("count", name, line, sizeof line);
    assert_int_equal(sscanf(line, "%u %u %u", &count.connections, &count.requests, &count.tunnels), 3);
    return count;
}

void tls_peers_chatter(const char *name) {
    char line[64];
    ask("chatter", name, line, sizeof line);
    assert_string_equal(line, "done\n");
}

void tls_peers_last(const char *name, char *text, size_t room) {
    char line[64];
    ask("last", name, line, sizeof line);
    size_t length = strtoul(line, NULL, 10), at = 0;
    for (size_t i = 0; i < length; i++) {
        int c = getc(from);
        assert_int_not_equal(c, EOF);
        if (at + 1 < room)
            text[at++] = (char)c;
    }
    text[at] = '\0';
}

struct call_answer tls_peers_call(struct hf_client *client, const struct hf_request *request) {
    struct call_answer answer;
    struct hf_response *response = NULL;
    size_t length = 0;
    memset(&answer, 0, sizeof answer);
    assert_int_equal(hf_call(client, request, &response, NULL), 0);
    const struct hf_outcome *outcome = hf_response_outcome(response);
    answer.status = hf_response_status(response);
    answer.native = hf_outcome_get_native(outcome);
    answer.kind = hf_outcome_get_kind(outcome);
    answer.stage = hf_outcome_get_stage(outcome);
    answer.sent = hf_outcome_get_sent(outcome);
    answer.verdict = hf_outcome_get_verdict(outcome);
    answer.class_of = hf_outcome_get_class(outcome);
    answer.attempts = hf_outcome_get_attempts(outcome);
    answer.retries = hf_outcome_get_retries(outcome);
    answer.connect_us = hf_outcome_get_connect_us(outcome);
    answer.tls_us = hf_outcome_get_tls_us(outcome);
    answer.first_byte_us = hf_outcome_get_first_byte_us(outcome);
    answer.total_us = hf_outcome_get_total_us(outcome);
    snprintf(answer.error_type, sizeof answer.error_type, "%s", hf_outcome_get_error_type(outcome));
    snprintf(answer.message, sizeof answer.message, "%s", hf_outcome_get_message(outcome));
    snprintf(answer.rule, sizeof answer.rule, "%s", hf_outcome_get_rule(outcome));
    const char *body = hf_response_body(response, &length);
    snprintf(answer.body, sizeof answer.body, "%.*s", (int)length, body ? body : "");
    hf_response_free(response);
    return answer;
}
