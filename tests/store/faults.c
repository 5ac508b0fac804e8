/* A disk that fails on demand: preloaded, it makes writes or syncs of files below $FAULT_FOLDER fail.

   faults_begin(kinds, after, error) lets `after` more such calls through and then fails every one with `error`;
   kinds: 1 writes, 2 syncs, 4 writes of which half arrives. faults_end() heals the disk and tells how many failed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { WRITES = 1, SYNCS = 2, TORN = 4 };

static int kinds, left, error, failed;

void faults_begin(int which, int after, int number) {
    left = after, error = number, failed = 0, kinds = which;
}

int faults_end(void) {
    kinds = 0;
    return failed;
}

static int is_ours(int file) {
    char link[64], path[PATH_MAX];
    const char *folder = getenv("FAULT_FOLDER");
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (folder == NULL || length < 0) return 0;
    path[length] = 0;
    return strncmp(path, folder, strlen(folder)) == 0;
}

static int fails(int which, int file) {
    if (!(kinds & which) || !is_ours(file)) return 0;
    if (left > 0) return left--, 0;
    return ++failed;
}

static int refuse(void) {
    errno = error;
    return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void *data, size_t size) {
    if (!fails(WRITES | TORN, file)) return REAL(write)(file, data, size);
    if (kinds & TORN) REAL(write)(file, data, size / 2);
    return refuse();
}

ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
    if (!fails(WRITES | TORN, file)) return REAL(pwrite)(file, data, size, at);
    if (kinds & TORN) REAL(pwrite)(file, data, size / 2, at);
    return refuse();
}

ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
    if (!fails(WRITES | TORN, file)) return REAL(pwrite64)(file, data, size, at);
    if (kinds & TORN) REAL(pwrite64)(file, data, size / 2, at);
    return refuse();
}

int fsync(int file) { return fails(SYNCS, file) ? refuse() : REAL(fsync)(file); }

int fdatasync(int file) { return fails(SYNCS, file) ? refuse() : REAL(fdatasync)(file); }
