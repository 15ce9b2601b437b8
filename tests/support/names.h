/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_NAMES_H
#define TESTS_SUPPORT_NAMES_H

/*
 * A program with names.c has its own getaddrinfo, which libcurl's resolver threads call: `slow…` blocks until it is let
 * go, `bad…` fails, every other name is 127.0.0.1. Any thread.
 */
int names_start(void);       /* once, first; 0 or it cannot work */
void names_hang(void);       /* `slow…` blocks from now on, and lookups are counted from 0 */
void names_let_go(void);     /* … and no longer */
void names_wait(void);       /* until every thread that looked a name up has ended */
unsigned names_count(void);  /* lookups since names_hang */
unsigned names_inside(void); /* that have not come back */

#endif
