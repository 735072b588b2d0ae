/* The native program of the wait matrix: `runner KIND MS WAIT ...` makes the waits of the library that it is linked
 * with, and prints one line of JSON for each. It knows nothing of sandboxes: one has started it, or not. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define TRIES_MAX 10
#define GOOD_S 0.05

/* Of the library, by the name of a wait. */
typedef int (*wait_function)(long);
void *dlsym(void *, const char *);

static double virtual_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

/* No library answers for what the kernel writes into a file. */
static double real_now(void) {
    double seconds = -1;
    FILE *file = fopen("/proc/uptime", "r");
    if (!file || fscanf(file, "%lf", &seconds) != 1) abort();
    fclose(file);
    return seconds;
}

int main(int count, char **words) {
    long ms = atol(words[2]);
    for (int at = 3; at < count; at++) {
        char name[128];
        snprintf(name, sizeof name, "wait_%s", words[at]);
        wait_function wait = (wait_function)dlsym(0, name);
        if (!wait) return 2;
        int right = 0;
        double virtual_s = 0, real_s = 1e9;
        for (int try = 0; try < TRIES_MAX && !(right && real_s < GOOD_S); try++) {
            double begin = virtual_now(), real_begin = real_now();
            right = wait(ms) == 0;
            virtual_s = virtual_now() - begin;
            real_s = real_now() - real_begin;
        }
        printf("{\"wait\": \"%s %s\", \"right\": %s, \"virtual_s\": %.9f, \"real_s\": %.3f}\n", words[1], words[at],
               right ? "true" : "false", virtual_s, real_s);
        fflush(stdout);
    }
    return 0;
}
