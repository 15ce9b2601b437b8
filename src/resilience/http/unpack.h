/* SPDX-License-Identifier: MIT */
#ifndef HFI_RESILIENCE_HTTP_UNPACK_H
#define HFI_RESILIENCE_HTTP_UNPACK_H

#include <curl/curl.h>
#include <stddef.h>

/* The decoding of a compressed body (RFC 9110 8.4.1): made when its first byte comes, of the answer's Content-Encoding.
 */
#define HFI_UNPACK_ACCEPT "gzip, deflate" /* what is asked for */

struct hfi_attempt;
struct hfi_unpack;
/* Bytes of the body as they came. What comes out goes to hfi_answer_keep. 0: the attempt is to end; why is noted. */
size_t hfi_unpack_body(struct hfi_attempt *attempt, const char *data, size_t size);
/* The end came with `code`: what it is, if the stream was broken or is not whole. */
CURLcode hfi_unpack_end(struct hfi_attempt *attempt, CURLcode code);
void hfi_unpack_reset(struct hfi_attempt *attempt);

#endif
