/* SPDX-License-Identifier: MIT */
#ifndef HFI_JOBS_DEATHS_LETTER_H
#define HFI_JOBS_DEATHS_LETTER_H

#include "base/text.h"
#include "jobs/store.h"

/*
 * A mail about an alert, as it goes on the wire (RFC 5322, 2045, 2047): CRLF, lines of at most 78 bytes, ASCII only,
 * quoted-printable body; no line begins with a dot. The same id at every try. Pure but for the memory of `mail`.
 */
void hfi_letter(struct hfi_bytes *mail, const struct hf_sink_options *sink, const struct hfi_alert *alert,
                struct hf_wall now);
/* One plain address: ASCII, one @, nothing that could be anything but an address. */
bool hfi_is_address(const char *text);

#endif
