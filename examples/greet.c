#include <holdfast/holdfast.h>
#include <stdio.h>

static enum hf_result greet(struct hf_work *work, void *user) {
    struct hf_request request = hf_request_to(((struct hf_downstream_options *)user)->name, "GET", "/hello");
    return hf_work_forward(work, &request); /* one call; its outcome is the job's, as it is */
}

int main(int argc, char **argv) {
    struct hf_downstream_options greeter = hf_downstream_at("greeter", argc > 1 ? argv[1] : "http://127.0.0.1:8080");
    struct hf_runner_options options = hf_runner_calling(&greeter, 1);
    struct hf_type_options type = hf_type_native("greet");
    struct hf_job_spec job = hf_job_of("greet", "{}");
    struct hf_error error = hf_error_none();
    struct hf_store *store = NULL;
    struct hf_runner *runner = NULL;
    options.until_idle = true;
    if (hf_store_open("sqlite:greet.db", NULL, &store, &error) || hf_runner_new(store, &options, &runner, &error) ||
        hf_runner_register(runner, &type, greet, &greeter, &error) || hf_enqueue(store, &job, NULL, NULL, &error) ||
        hf_runner_run(runner, &error))
        fprintf(stderr, "greet: %s: %s (%s)\n", error.what, error.why, error.fix);
    hf_runner_free(runner);
    hf_store_close(store);
    return error.code != 0;
}
