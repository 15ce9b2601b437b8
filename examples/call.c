#include <holdfast/holdfast.h>
#include <stdio.h>

int main(int argc, char **argv) {
    struct hf_downstream_options bank = hf_downstream_at("bank", argc > 1 ? argv[1] : "http://127.0.0.1:8080");
    struct hf_request request = hf_request_to("bank", "GET", "/balance");
    struct hf_error error = hf_error_none();
    struct hf_client *client = NULL;
    struct hf_response *response = NULL;
    char line[512];
    if (hf_client_new(&bank, 1, &client, &error) || hf_call(client, &request, &response, &error))
        fprintf(stderr, "call: %s: %s (%s)\n", error.what, error.why, error.fix);
    int ok = 0;
    if (response) {
        const struct hf_outcome *outcome = hf_response_outcome(response);
        hf_outcome_print(outcome, line, sizeof line);
        puts(line);
        ok = hf_outcome_get_kind(outcome) == HF_OUTCOME_SUCCESS;
    }
    hf_response_free(response);
    hf_client_close(client);
    return !ok;
}
