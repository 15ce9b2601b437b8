/* SPDX-License-Identifier: MIT */
/*
 * The mail sink: SMTP through libcurl on a thread of its own, because libcurl blocks there, in QUIT for two minutes.
 * Decides nothing but how a dialogue ended. Must never keep the loop waiting, show a password, or take a mail for lost
 * that the server has taken: once it said yes, what the connection does is nobody's business. Loop thread, but for
 * `work` and what it calls.
 */
#include <curl/curl.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "holdfast/classify.h"
#include "jobs/deaths/letter.h"
#include "jobs/deaths/recipients.h"
#include "jobs/deaths/sink.h"

#define MAIL_MAX ((size_t)8 << 20)

struct mail {
    struct hfi_sink sink;
    struct hfi_scheduler *scheduler;
    const struct hf_sink_options *options;
    char *hello; /* the server with the name we greet it by */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wanted;
    struct hfi_sink_try *waiting, *busy, *finished; /* under the lock */
    bool closing;
    int event; /* something is finished */
    struct hfi_watch *watch;
};

struct hfi_sink_try {
    struct mail *mail;
    struct hfi_sink_try *next;
    struct hfi_bytes bytes;
    size_t sent;
    hfi_sink_fn done; /* NULL: nobody waits any more */
    void *user;
    struct hfi_timer timer;
    int64_t budget_ms;
    _Atomic bool abandoned;
    struct hfi_recipients recipients; /* who need not be asked, and once the mail was taken: next time */
    size_t asked[HFI_RECIPIENTS_MAX]; /* their places, in the order of this dialogue */
    size_t asked_count, next_asked;
    bool at_recipient; /* the command on its way is a RCPT, to asked[next_asked - 1] */
    bool taken_in[HFI_RECIPIENTS_MAX]; /* answered for good, yes or no */
    int refused;       /* for good, the answer to one; 0 none */
    int put_off;       /* for now, the answer to one; 0 none */
    char error_type[64], had[HFI_ALERT_HAD_MAX + 1];
};

/* ------------------------------------------------------------------ the dialogue, on the thread */

static size_t read_mail(char *to, size_t size, size_t count, void *user) {
    struct hfi_sink_try *try = user;
    size_t left = try->bytes.length - try->sent, length = size * count < left ? size * count : left;
    memcpy(to, try->bytes.data + try->sent, length);
    try->sent += length;
    return length;
}

static size_t drop(char *data, size_t size, size_t count, void *user) {
    (void)data;
    (void)user;
    return size * count;
}

static int is_over(void *user, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d) {
    struct hfi_sink_try *try = user;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return atomic_load(&try->abandoned);
}

static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)user;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

/* One bad address does not stop the others, and libcurl would keep it to itself. */
static int overhear(CURL *easy, curl_infotype kind, char *data, size_t length, void *user) {
    struct hfi_sink_try *try = user;
    (void)easy;
    if (kind == CURLINFO_HEADER_OUT) {
        try->at_recipient = length >= 8 && strncasecmp(data, "RCPT TO:", 8) == 0 && try->next_asked < try->asked_count;
        try->next_asked += try->at_recipient;
    } else if (kind == CURLINFO_HEADER_IN && try->at_recipient && length >= 3) {
        if (data[0] == '4' || data[0] == '5')
            *(data[0] == '4' ? &try->put_off : &try->refused) =
                (data[0] - '0') * 100 + (data[1] - '0') * 10 + (data[2] - '0');
        try->taken_in[try->asked[try->next_asked - 1]] = data[0] != '4';
    }
    return 0;
}

static CURLcode set_server(CURL *easy, const struct mail *mail, struct curl_slist *to) {
    static const long tls[] = {CURLUSESSL_ALL, CURLUSESSL_TRY, CURLUSESSL_NONE};
    const struct hf_sink_options *options = mail->options;
    CURLcode rc = CURLE_OK;
    rc |= curl_easy_setopt(easy, CURLOPT_URL, mail->hello);
    rc |= curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    rc |= curl_easy_setopt(easy, CURLOPT_PROXY, "");
    rc |= curl_easy_setopt(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    rc |= curl_easy_setopt(easy, CURLOPT_USE_SSL, tls[options->tls]);
    rc |= curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    if (options->ca_file)
        rc |= curl_easy_setopt(easy, CURLOPT_CAINFO, options->ca_file);
    if (options->user) {
        rc |= curl_easy_setopt(easy, CURLOPT_USERNAME, options->user);
        rc |= curl_easy_setopt(easy, CURLOPT_PASSWORD, options->password);
    }
    rc |= curl_easy_setopt(easy, CURLOPT_MAIL_FROM, options->from);
    rc |= curl_easy_setopt(easy, CURLOPT_MAIL_RCPT, to);
    rc |= curl_easy_setopt(easy, CURLOPT_MAIL_RCPT_ALLLOWFAILS, 1L);
    return rc;
}

static CURLcode set_try(CURL *easy, struct hfi_sink_try *try) {
    CURLcode rc = CURLE_OK;
    rc |= curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* never join a resolver thread */
    rc |= curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)try->budget_ms);
    rc |= curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)try->budget_ms);
    rc |= curl_easy_setopt(easy, CURLOPT_SERVER_RESPONSE_TIMEOUT, (long)(try->budget_ms + 999) / 1000);
    rc |= curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_READFUNCTION, read_mail);
    rc |= curl_easy_setopt(easy, CURLOPT_READDATA, try);
    rc |= curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop);
    rc |= curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    rc |= curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, is_over);
    rc |= curl_easy_setopt(easy, CURLOPT_XFERINFODATA, try);
    rc |= curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    rc |= curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    rc |= curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, overhear);
    rc |= curl_easy_setopt(easy, CURLOPT_DEBUGDATA, try);
    return rc;
}

static void judge(struct hfi_sink_try *try, CURLcode rc, long answer) {
    struct hf_outcome outcome;
    if (rc == CURLE_OK) {
        if (try->refused != 0)
            hfi_log(HF_LOG_WARNING, "alert.recipient_refused", HFI_S("sink", try->mail->sink.name),
                    HFI_I("answer", try->refused), NULL);
        if (try->put_off != 0) { /* greylisting: to be tried again, with those alone who have it not */
            const struct hf_sink_options *options = try->mail->options;
            snprintf(try->error_type, sizeof try->error_type, "smtp.%d", try->put_off);
            for (size_t i = 0; i < options->to_count; i++)
                try->recipients.settled[i] = try->recipients.settled[i] || try->taken_in[i];
            hfi_recipients_print(&try->recipients, options->to, options->to_count, try->had);
        }
        return;
    }
    if (rc == CURLE_OPERATION_TIMEDOUT) {
        hfi_text_copy(try->error_type, sizeof try->error_type, "timeout.alert");
    } else if (answer >= 400 && answer <= 599) {
        snprintf(try->error_type, sizeof try->error_type, "smtp.%ld", answer);
    } else if (rc == CURLE_USE_SSL_FAILED) {
        hfi_text_copy(try->error_type, sizeof try->error_type, "smtp.no_starttls");
    } else {
        hf_classify_curl((int)rc, HF_SENT_MAYBE, &outcome);
        hfi_text_copy(try->error_type, sizeof try->error_type, outcome.error_type[0] ? outcome.error_type : "smtp.failed");
    }
}

/* The try goes before the connection does. */
static void forget_try(CURL *easy) {
    curl_easy_setopt(easy, CURLOPT_VERBOSE, 0L);
    curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_DEBUGDATA, NULL);
    curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 1L);
    curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_XFERINFODATA, NULL);
    curl_easy_setopt(easy, CURLOPT_READFUNCTION, NULL);
    curl_easy_setopt(easy, CURLOPT_READDATA, NULL);
}

/* It has its answer: what QUIT would bring may not be waited for. */
static void hang_up(CURL *easy) {
    curl_socket_t socket_fd = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket_fd) == CURLE_OK && socket_fd != CURL_SOCKET_BAD)
        shutdown(socket_fd, SHUT_RD);
    curl_easy_cleanup(easy);
}

static void finish(struct hfi_sink_try *try);

static void talk(struct hfi_sink_try *try) {
    const struct hf_sink_options *options = try->mail->options;
    CURL *easy = curl_easy_init();
    struct curl_slist *to = NULL;
    bool whole = easy != NULL;
    for (size_t i = 0; i < options->to_count && whole; i++) {
        if (try->recipients.settled[i])
            continue;
        try->asked[try->asked_count++] = i;
        struct curl_slist *longer = curl_slist_append(to, options->to[i]);
        whole = longer != NULL;
        to = whole ? longer : to;
    }
    long answer = 0;
    if (!whole || set_server(easy, try->mail, to) != CURLE_OK || set_try(easy, try) != CURLE_OK) {
        hfi_text_copy(try->error_type, sizeof try->error_type, "local.memory");
    } else {
        CURLcode rc = curl_easy_perform(easy);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &answer);
        judge(try, rc, answer);
    }
    if (easy)
        forget_try(easy);
    finish(try);
    if (easy)
        hang_up(easy);
    curl_slist_free_all(to);
}

/* After this the loop may free it. */
static void finish(struct hfi_sink_try *try) {
    struct mail *mail = try->mail;
    uint64_t one = 1;
    pthread_mutex_lock(&mail->lock);
    mail->busy = NULL;
    try->next = mail->finished;
    mail->finished = try;
    pthread_mutex_unlock(&mail->lock);
    ssize_t written = write(mail->event, &one, sizeof one);
    (void)written; /* a counter that is full wakes the loop as well */
}

static void *work(void *user) {
    struct mail *mail = user;
    pthread_mutex_lock(&mail->lock);
    while (!mail->closing) {
        struct hfi_sink_try *try = mail->waiting;
        if (!try) {
            pthread_cond_wait(&mail->wanted, &mail->lock);
            continue;
        }
        mail->waiting = try->next;
        mail->busy = try;
        pthread_mutex_unlock(&mail->lock);
        talk(try);
        pthread_mutex_lock(&mail->lock);
    }
    pthread_mutex_unlock(&mail->lock);
    return NULL;
}

/* ------------------------------------------------------------------ the loop's side */

static void free_try(struct hfi_sink_try *try) {
    hfi_bytes_free(&try->bytes);
    hfi_free(try);
}

static void on_finished(struct hfi_watch *watch, unsigned events, void *user) {
    struct mail *mail = user;
    uint64_t count;
    (void)watch;
    (void)events;
    ssize_t got = read(mail->event, &count, sizeof count);
    (void)got;
    pthread_mutex_lock(&mail->lock);
    struct hfi_sink_try *list = mail->finished;
    mail->finished = NULL;
    pthread_mutex_unlock(&mail->lock);
    while (list) {
        struct hfi_sink_try *try = list;
        list = try->next;
        mail->scheduler->ops->disarm(mail->scheduler, &try->timer);
        hfi_sink_fn done = try->done;
        char error_type[sizeof try->error_type], had[sizeof try->had];
        hfi_text_copy(error_type, sizeof error_type, try->error_type);
        hfi_text_copy(had, sizeof had, try->had);
        user = try->user;
        free_try(try);
        if (done)
            done(error_type[0] ? error_type : NULL, had[0] ? had : NULL, user);
    }
}

/* Nobody waits for it any more. One that was not begun goes at once, the others when the thread is through. */
static void abandon(struct hfi_sink_try *try) {
    struct mail *mail = try->mail;
    bool begun = true;
    mail->scheduler->ops->disarm(mail->scheduler, &try->timer);
    try->done = NULL;
    atomic_store(&try->abandoned, true);
    pthread_mutex_lock(&mail->lock);
    for (struct hfi_sink_try **at = &mail->waiting; *at && begun; at = &(*at)->next) {
        if (*at == try) {
            *at = try->next;
            begun = false;
            break;
        }
    }
    pthread_mutex_unlock(&mail->lock);
    if (!begun)
        free_try(try);
}

static void out_of_time(struct hfi_timer *timer, void *user) {
    struct hfi_sink_try *try = user;
    hfi_sink_fn done = try->done;
    void *whose = try->user;
    (void)timer;
    abandon(try);
    if (done)
        done("timeout.alert", NULL, whose);
}

static int begin_try(struct hfi_sink *self, const struct hfi_alert *alert, hfi_sink_fn done, void *user,
                struct hfi_sink_try **out) {
    struct mail *mail = (struct mail *)(void *)self;
    struct hfi_scheduler *scheduler = mail->scheduler;
    struct hfi_sink_try *try = hfi_alloc(sizeof *try);
    if (!try)
        return HF_ENOMEM;
    try->mail = mail;
    try->done = done;
    try->user = user;
    try->budget_ms = self->budget_ms;
    hfi_timer_init(&try->timer, out_of_time, try);
    hfi_recipients_read(&try->recipients, mail->options->to, mail->options->to_count, alert->had);
    hfi_bytes_init(&try->bytes, MAIL_MAX);
    hfi_letter(&try->bytes, mail->options, alert, scheduler->ops->wall(scheduler));
    struct hf_mono until = hfi_mono_after_ms(scheduler->ops->mono(scheduler), self->budget_ms);
    int code = try->bytes.failed ? HF_ENOMEM : scheduler->ops->arm(scheduler, &try->timer, until);
    if (code != 0) {
        free_try(try);
        return code;
    }
    pthread_mutex_lock(&mail->lock);
    struct hfi_sink_try **last = &mail->waiting;
    while (*last)
        last = &(*last)->next;
    *last = try;
    pthread_cond_signal(&mail->wanted);
    pthread_mutex_unlock(&mail->lock);
    *out = try;
    return 0;
}

static void cancel(struct hfi_sink *self, struct hfi_sink_try *try) {
    (void)self;
    abandon(try);
}

static void free_mail(struct mail *mail) {
    if (mail->event >= 0)
        close(mail->event);
    pthread_cond_destroy(&mail->wanted);
    pthread_mutex_destroy(&mail->lock);
    hfi_free(mail->hello);
    hfi_free(mail);
}

static void close_sink(struct hfi_sink *self) {
    struct mail *mail = (struct mail *)(void *)self;
    pthread_mutex_lock(&mail->lock);
    mail->closing = true;
    if (mail->busy)
        atomic_store(&mail->busy->abandoned, true);
    pthread_cond_signal(&mail->wanted);
    pthread_mutex_unlock(&mail->lock);
    pthread_join(mail->thread, NULL);
    while (mail->finished) {
        struct hfi_sink_try *try = mail->finished;
        mail->finished = try->next;
        free_try(try);
    }
    mail->scheduler->ops->unwatch(mail->scheduler, mail->watch);
    free_mail(mail);
}

static const struct hfi_sink_ops mail_ops = {begin_try, cancel, close_sink};

/* The name we greet by stands in the path: that of this host, or of the sender's domain. */
static char *greeting(const struct hf_sink_options *options) {
    char host[256] = "", text[1024];
    bool known = gethostname(host, sizeof host - 1) == 0 && host[0] &&
                 strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-") == strlen(host);
    int length = snprintf(text, sizeof text, "%s/%s", options->server, known ? host : strchr(options->from, '@') + 1);
    return length < (int)sizeof text ? hfi_strdup(text) : NULL;
}

static int begin(struct mail *mail) {
    sigset_t all, before;
    int code = mail->scheduler->ops->watch(mail->scheduler, mail->event, HFI_READABLE, on_finished, mail, &mail->watch);
    if (code != 0)
        return code;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* SIGPIPE of a cut TLS connection among them */
    code = pthread_create(&mail->thread, NULL, work, mail) == 0 ? 0 : HF_ENOMEM;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        mail->scheduler->ops->unwatch(mail->scheduler, mail->watch);
    return code;
}

static pthread_once_t global_once = PTHREAD_ONCE_INIT;
static void init_curl(void) {
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

int hfi_mail_new(struct hfi_scheduler *scheduler, const struct hf_sink_options *options, struct hfi_sink **sink,
                 struct hf_error *error) {
    struct mail *mail = hfi_alloc(sizeof *mail);
    if (!mail)
        return hfi_fail(error, HF_ENOMEM, options->name, NULL, "no memory");
    pthread_once(&global_once, init_curl);
    pthread_mutex_init(&mail->lock, NULL);
    pthread_cond_init(&mail->wanted, NULL);
    mail->sink.ops = &mail_ops;
    mail->sink.at_once = 1;
    mail->scheduler = scheduler;
    mail->options = options;
    mail->hello = greeting(options);
    mail->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int code = !mail->hello ? HF_ENOMEM : mail->event < 0 ? HF_EIO : begin(mail);
    if (code != 0) {
        free_mail(mail);
        return hfi_fail(error, code, options->name, NULL, "its thread could not be started: %s", hf_strerror(code));
    }
    *sink = &mail->sink;
    return 0;
}
