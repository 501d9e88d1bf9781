#pragma once
/* snug's answers for programs of any language: a question in the words of the command line, its answer as text. What `snug
   plan`, `fit`, `explain`, `models` and `gpus` print, from the same code, without starting a program:

     const char* words[] = {"plan", "meta-llama/Llama-3.1-8B", "--method", "lora", "--gpu", "RTX 4090", "--json"};
     snug_answer* answer = snug_ask(7, words);
     if (snug_exit_code(answer) == 0) puts(snug_output(answer));
     else fputs(snug_messages(answer), stderr);
     snug_free(answer);

   Files are read where the words name them, and written for --html, --trace and --write alone. Nothing is printed, the
   process is never ended, no state is kept: several threads may ask at once. With --json the output is as docs/schema says.
 */

#ifdef __cplusplus
extern "C" {
#endif

#define SNUG_API __attribute__((visibility("default")))

typedef struct snug_answer snug_answer;

/* `count` words, the command first, in UTF-8. Null where there is no memory for an answer; whoever asked frees it. */
SNUG_API snug_answer* snug_ask(int count, const char* const* words);

/* 0: done, and it fits; 1: bad input or failure; 2: the words make no question; 3: it does not fit. */
SNUG_API int snug_exit_code(const snug_answer* answer);

/* What the program would print, and what it would tell beside it on stderr. UTF-8 that ends with a zero byte; valid until
   snug_free. */
SNUG_API const char* snug_output(const snug_answer* answer);
SNUG_API const char* snug_messages(const snug_answer* answer);

/* Null is let be. */
SNUG_API void snug_free(snug_answer* answer);

/* "0.1.0" */
SNUG_API const char* snug_version(void);

#ifdef __cplusplus
}
#endif
