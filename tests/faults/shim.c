/* Preloaded into a process, records or refuses what it does to the files below one folder; shim.py is its interface.

   A record is written after the call that it describes has succeeded, and calls are serialised, so that the journal
   is the order in which the files changed. A write that is refused leaves half of its bytes behind. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <unistd.h>

enum { READ = 1, WRITE = 2, SYNC = 4, NAME = 8, REMOVE = 16 };

static pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static char folder[PATH_MAX]; /* empty while nothing is watched */
static int journal = -1, paused;
static int kinds, number, error, lasting, calls, failed;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* -- interface --------------------------------------------------------------------------------------------------- */

void shim_record(const char *path, int file) {
    snprintf(folder, sizeof folder, "%s/", path);
    journal = file;
}

void shim_fail(const char *path, int which, int at, int with, int from_then_on) {
    snprintf(folder, sizeof folder, "%s/", path);
    number = at, error = with, lasting = from_then_on, calls = failed = 0, kinds = which;
}

int shim_end(void) {
    int count = failed;
    folder[0] = 0, journal = -1, kinds = 0, paused = 0, failed = 0;
    return count;
}

void shim_pause(int on) { paused = on; }

static void record(char kind, const char *name, int64_t offset, const void *data, uint32_t size) {
    if (journal < 0) return;
    struct __attribute__((packed)) {
        int64_t offset;
        uint32_t name, data;
        char kind;
    } header = {offset, (uint32_t)strlen(name), size, kind};
    int before = errno;
    if (REAL(write)(journal, &header, sizeof header) != sizeof header ||
        REAL(write)(journal, name, header.name) != header.name || REAL(write)(journal, data, size) != size)
        abort();
    errno = before;
}

void shim_acknowledge(void) { record('A', "", 0, "", 0); }

/* -- which calls are watched ------------------------------------------------------------------------------------- */

static const char *below(const char *path) {
    size_t length = strlen(folder);
    return length && !paused && strncmp(path, folder, length) == 0 ? path + length : NULL;
}

/* The name of an open file below the folder; NULL if it is elsewhere, or was removed. */
static const char *name_of(int file, char *buffer) {
    if (!folder[0] || paused) return NULL;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    if (length < 0) return NULL;
    buffer[length] = 0;
    if (length > 10 && strcmp(buffer + length - 10, " (deleted)") == 0) return NULL;
    if (strncmp(buffer, folder, strlen(folder) - 1) == 0 && strlen(buffer) == strlen(folder) - 1) return "";
    return below(buffer);
}

static const char *name_at(int directory, const char *path, char *buffer) {
    if (path[0] == '/') return below(path);
    char parent[PATH_MAX];
    const char *name = directory == AT_FDCWD ? NULL : name_of(directory, parent);
    if (name == NULL) return NULL;
    snprintf(buffer, PATH_MAX, "%s%s%s", name, name[0] ? "/" : "", path);
    return buffer;
}

static int fails(int kind) {
    if (!(kinds & kind)) return 0;
    calls++;
    if (calls < number || (calls > number && !lasting)) return 0;
    return ++failed;
}

static int refuse(ssize_t written) { /* what a write leaves behind before it fails */
    (void)written;
    errno = error;
    return -1;
}

/* Make the real call and record it, unless it is watched and shall fail. */
#define WATCHED(type, kind, half, call, recorded)                                                                      \
    pthread_mutex_lock(&mutex);                                                                                        \
    type done = name != NULL && fails(kind) ? refuse(half) : call;                                                     \
    if (name != NULL && done >= 0) recorded;                                                                           \
    pthread_mutex_unlock(&mutex);                                                                                      \
    return done;

/* -- contents ---------------------------------------------------------------------------------------------------- */

#define FILE_CALL(type, declaration, kind, half, call, recorded)                                                       \
    type declaration {                                                                                                 \
        char buffer[PATH_MAX];                                                                                         \
        const char *name = name_of(file, buffer);                                                                      \
        WATCHED(type, kind, half, call, recorded)                                                                      \
    }

FILE_CALL(ssize_t, write(int file, const void *data, size_t size), WRITE, REAL(write)(file, data, size / 2),
          REAL(write)(file, data, size), record('W', name, lseek(file, 0, SEEK_CUR) - done, data, (uint32_t)done))
FILE_CALL(ssize_t, pwrite(int file, const void *data, size_t size, off_t at), WRITE,
          REAL(pwrite)(file, data, size / 2, at), REAL(pwrite)(file, data, size, at),
          record('W', name, at, data, (uint32_t)done))
FILE_CALL(ssize_t, pwrite64(int file, const void *data, size_t size, off64_t at), WRITE,
          REAL(pwrite64)(file, data, size / 2, at), REAL(pwrite64)(file, data, size, at),
          record('W', name, at, data, (uint32_t)done))
FILE_CALL(int, ftruncate(int file, off_t size), WRITE, 0, REAL(ftruncate)(file, size), record('T', name, size, "", 0))
FILE_CALL(int, ftruncate64(int file, off64_t size), WRITE, 0, REAL(ftruncate64)(file, size),
          record('T', name, size, "", 0))
FILE_CALL(int, fsync(int file), SYNC, 0, REAL(fsync)(file), record('S', name, 0, "", 0))
FILE_CALL(int, fdatasync(int file), SYNC, 0, REAL(fdatasync)(file), record('S', name, 0, "", 0))
FILE_CALL(ssize_t, read(int file, void *data, size_t size), READ, 0, REAL(read)(file, data, size), (void)0)
FILE_CALL(ssize_t, pread(int file, void *data, size_t size, off_t at), READ, 0, REAL(pread)(file, data, size, at),
          (void)0)
FILE_CALL(ssize_t, pread64(int file, void *data, size_t size, off64_t at), READ, 0,
          REAL(pread64)(file, data, size, at), (void)0)

/* A disk that is full has no room. */
#define SPACE_CALL(facts, name)                                                                                        \
    int name(const char *path, struct facts *space) {                                                                  \
        int done = REAL(name)(path, space);                                                                            \
        if (done == 0 && failed && lasting && error == ENOSPC) space->f_bavail = 0;                                    \
        return done;                                                                                                   \
    }

SPACE_CALL(statvfs, statvfs)
SPACE_CALL(statvfs64, statvfs64)

/* Python reads and writes instead. */
ssize_t sendfile(int out, int in, off_t *at, size_t size) {
    char buffer[PATH_MAX];
    if (name_of(out, buffer) == NULL) return REAL(sendfile)(out, in, at, size);
    errno = ENOTSOCK;
    return -1;
}

/* -- names ------------------------------------------------------------------------------------------------------- */

#define OPEN_CALL(declaration, directory, call)                                                                        \
    int declaration {                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, flags);                                                                                         \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;                                        \
        va_end(list);                                                                                                  \
        char buffer[PATH_MAX];                                                                                         \
        const char *name = flags & (O_CREAT | O_TRUNC) ? name_at(directory, path, buffer) : NULL;                      \
        int makes = name != NULL && faccessat(directory, path, F_OK, 0) != 0;                                          \
        if (!makes && !(flags & O_TRUNC)) name = NULL;                                                                 \
        WATCHED(int, makes ? NAME : WRITE, 0, call, record(makes ? 'C' : 'T', name, 0, "", 0))                         \
    }

OPEN_CALL(open(const char *path, int flags, ...), AT_FDCWD, REAL(open)(path, flags, mode))
OPEN_CALL(open64(const char *path, int flags, ...), AT_FDCWD, REAL(open64)(path, flags, mode))
OPEN_CALL(openat(int at, const char *path, int flags, ...), at, REAL(openat)(at, path, flags, mode))
OPEN_CALL(openat64(int at, const char *path, int flags, ...), at, REAL(openat64)(at, path, flags, mode))

#define NAME_CALL(declaration, directory, kind, call, letter)                                                          \
    int declaration {                                                                                                  \
        char buffer[PATH_MAX];                                                                                         \
        const char *name = name_at(directory, path, buffer);                                                           \
        WATCHED(int, kind, 0, call, record(letter, name, 0, "", 0))                                                 \
    }

NAME_CALL(mkdir(const char *path, mode_t mode), AT_FDCWD, NAME, REAL(mkdir)(path, mode), 'D')
NAME_CALL(mkdirat(int at, const char *path, mode_t mode), at, NAME, REAL(mkdirat)(at, path, mode), 'D')
NAME_CALL(unlink(const char *path), AT_FDCWD, REMOVE, REAL(unlink)(path), 'U')
NAME_CALL(rmdir(const char *path), AT_FDCWD, REMOVE, REAL(rmdir)(path), 'U')
NAME_CALL(unlinkat(int at, const char *path, int flags), at, REMOVE, REAL(unlinkat)(at, path, flags), 'U')

#define PAIR_CALL(declaration, from, to, call, letter)                                                                 \
    int declaration {                                                                                                  \
        char buffer[PATH_MAX], other[PATH_MAX];                                                                        \
        const char *name = name_at(from, path, buffer), *target = name_at(to, next, other);                            \
        WATCHED(int, NAME, 0, call, record(letter, name, 0, target, (uint32_t)strlen(target)))                      \
    }

PAIR_CALL(rename(const char *path, const char *next), AT_FDCWD, AT_FDCWD, REAL(rename)(path, next), 'R')
PAIR_CALL(renameat(int at, const char *path, int to, const char *next), at, to, REAL(renameat)(at, path, to, next), 'R')
PAIR_CALL(link(const char *path, const char *next), AT_FDCWD, AT_FDCWD, REAL(link)(path, next), 'L')
PAIR_CALL(linkat(int at, const char *path, int to, const char *next, int flags), at, to,
          REAL(linkat)(at, path, to, next, flags), 'L')
