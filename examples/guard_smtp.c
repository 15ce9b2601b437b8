/* One mail over SMTP: the reply that ended the dialogue is classified, and each wait for one ends with the deadline. */
#include <arpa/inet.h>
#include <errno.h>
#include <holdfast/holdfast.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Sends a line (NULL: only listens) and returns the code of the reply, or minus the errno. */
static int say(FILE *smtp, int64_t deadline_us, const char *line) {
    char reply[1024] = "";
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    int64_t left_us = deadline_us - (now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000);
    struct timeval limit = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};
    if (left_us <= 0)
        return -ETIMEDOUT;
    setsockopt(fileno(smtp), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (line != NULL && (fputs(line, smtp) < 0 || fflush(smtp) != 0))
        return -errno;
    do /* a reply of several lines has a dash behind its code */
        if (fgets(reply, sizeof reply, smtp) == NULL)
            return ferror(smtp) ? (errno == EAGAIN ? -ETIMEDOUT : -errno) : -ECONNRESET;
    while (reply[0] != '\0' && reply[3] == '-');
    return atoi(reply);
}

static void deliver(int64_t deadline_us, struct hf_outcome *outcome, void *user) {
    static const char *const dialogue[] = {NULL, "EHLO localhost\r\n", "MAIL FROM:<a@example.org>\r\n",
                                           "RCPT TO:<b@example.org>\r\n", "DATA\r\n",
                                           "Subject: hello\r\n\r\nIt held fast.\r\n.\r\n"};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), code = 0;
    FILE *smtp = fd >= 0 && connect(fd, user, sizeof(struct sockaddr_in)) == 0 ? fdopen(fd, "r+") : NULL;
    if (smtp == NULL) {
        hf_classify_errno(errno, outcome); /* ECONNREFUSED proves that nothing was sent */
        if (fd >= 0)
            close(fd);
        return;
    }
    for (size_t i = 0; i < sizeof dialogue / sizeof *dialogue && code >= 0 && code < 400; i++)
        code = say(smtp, deadline_us, dialogue[i]);
    if (code < 0)
        hf_classify_errno(-code, outcome);
    else
        hf_classify_smtp(code, outcome);
    fclose(smtp);
}

int main(int argc, char **argv) {
    struct sockaddr_in server = {.sin_family = AF_INET, .sin_port = htons((uint16_t)(argc > 1 ? atoi(argv[1]) : 25))};
    struct hf_downstream *mail = NULL;
    struct hf_guard_options options;
    struct hf_outcome *outcome = hf_outcome_new();
    char line[512];
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    hf_guard_options_init(&options);
    options.repeatable = true; /* rather twice than never */
    if (!outcome || hf_downstream_new("mail", NULL, &mail, NULL) || hf_guard_run_with(mail, &options, deliver, outcome, &server))
        return 2;
    hf_outcome_print(outcome, line, sizeof line);
    puts(line);
    int ok = hf_outcome_get_kind(outcome) == HF_OUTCOME_SUCCESS;
    hf_outcome_free(outcome);
    hf_downstream_unref(mail);
    return !ok;
}
