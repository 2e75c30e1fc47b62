/* What misbehaves.so does wrong in prefill, chosen by the Problem's scale. Shared by the plugin and
 * by the tests; C, since the plugin is. */
#ifndef ATTEST_TEST_BEHAVIOURS_H
#define ATTEST_TEST_BEHAVIOURS_H

enum Behaviour {
  BEHAVES_WELL,    /* o and lse are zeros */
  TELLS_PROCESS,   /* o holds the process id */
  WRITES_NULL,     /* SIGSEGV */
  DIVIDES_BY_ZERO, /* SIGFPE */
  ABORTS,          /* SIGABRT, after printing a line */
  EXITS,           /* exit(3) */
  HANGS,
  OVERFLOWS_STACK,
  WRITES_TO_REFUSED,     /* malloc until it fails, then write through the result */
  EXITS_WHEN_REFUSED,    /* malloc until it fails, then exit(1) */
  RETURNS_WHEN_REFUSED,  /* malloc until it fails, then return 12 */
  RETURNS_ERROR,         /* 7, with last_error() */
  READS_BEHIND_K,        /* one element */
  WRITES_BEHIND_V,       /* one element */
  WRITES_BEFORE_Q,       /* one element */
  WRITES_FAR_BEFORE_O,   /* beyond the readable guard zone */
  WRITES_BEHIND_SCRATCH, /* one byte */
  CHANGES_Q,             /* q[0,0,0,1] */
  CHANGES_SPARE_SLOT,    /* the first row of k behind the keys */
  CHANGES_LAST_BLOCK,    /* the first element of the last block of k */
  CHANGES_LENGTHS,       /* seqlens_kv[0] */
  FORGETS_LAST_O,        /* the last element of o */
  FORGETS_LSE,           /* all of it */
  WRITES_BEHIND_QUERIES, /* all rows of o, whatever the query lengths */
  FILLS_ROW_GAP,         /* layout bthd: what lies between two rows of o */
  FLOODS_STDOUT,         /* 4 MiB, then well */
  TALKS_TO_CONTROL,      /* writes to the socket of the protocol */
  COPIES_SPARE_SLOT,     /* o[0,0,0,:] := the first row of k behind the keys */
  COPIES_SCRATCH,        /* lse := scratch */
  ASKS_FOR_NEGATIVE_SCRATCH,
  CRASHES_IN_DECLINES,
  REACHES_UNSUPPORTED, /* an instruction that the emulator does not execute */
  LAUNCHES_SECOND,     /* well, with a kernel that nothing else launches */
  FAULTS_THEN_SECOND,  /* the same kernel, after a fault of another */
  SPINS,               /* at work for ever: on the host, or in a kernel that stores all the time */
  FORKS,               /* o: the process id of a child that waits for ever */
  FORKS_DETACHED,      /* the same, in a session of its own and without its parent */
  FORKS_AND_ABORTS,    /* SIGABRT, while such a child holds what it inherited */
  COPIES_FROM_NOWHERE, /* cudaMemcpy from an address where nothing is */
};

#endif
