/* Collectives of ranks on one host through memory they share.
 *
 * For sums each member has two slots, used in turn, and a count of the sums it began. A member that
 * has seen every peer begin sum n knows that all have read what was in the slots at sum n - 1, so
 * one exchange needs one flag and no second barrier. Every member adds the slots in rank order, so
 * all get the same bits. For messages each ordered pair has a ring of bytes.
 *
 * Whoever waits looks for a short while, then sleeps on its own futex; whoever changes something
 * wakes it only if it sleeps. The memory comes zeroed, and goes with the last process that has it.
 */

#define _GNU_SOURCE
#include <linux/futex.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LINE 128 /* two of x86's cache lines, fetched together; one of some ARM cores */
#define SLOT (64u << 10)
#define RING (4u << 20)
#define PIECE (256u << 10) /* of a ring, copied at once while the peer copies the one before */

#define LONGEST_LOOK_NS 200000
#define SHORTEST_LOOK_NS 2000
#define LOOKS 32 /* between two looks at the clock */
#define SLICE_NS 50000000L

enum { DONE, GONE, SILENT };

typedef struct {
    _Alignas(LINE) _Atomic uint32_t begun;  /* sums */
    _Alignas(LINE) _Atomic uint32_t asleep; /* 1 while it waits in the kernel: a futex */
} Member;

typedef struct {
    _Alignas(LINE) _Atomic uint32_t written; /* bytes, modulo 2^32 */
    _Alignas(LINE) _Atomic uint32_t taken;
    _Alignas(LINE) unsigned char bytes[RING];
} Ring;

typedef struct {
    Member *members;
    float *slots;
    Ring *rings;
    const int *sockets; /* by peer; a peer that died closed its end */
    int64_t patience_ns, look_ns;
    uint32_t rank, size, sums;
} Group;

size_t tandem_bytes(uint32_t size)
{
    return size * (sizeof(Member) + 2 * (size_t)SLOT) + (size_t)size * size * sizeof(Ring);
}

/* What a member keeps for itself; the caller owns that memory, too. */
size_t tandem_state_bytes(void)
{
    return sizeof(Group);
}

void tandem_open(Group *group, void *base, uint32_t rank, uint32_t size, const int *sockets,
                 double patience)
{
    group->members = base;
    group->slots = (float *)(group->members + size);
    group->rings = (Ring *)((char *)group->slots + size * 2 * (size_t)SLOT);
    group->sockets = sockets;
    group->patience_ns = (int64_t)(patience * 1e9);
    group->look_ns = LONGEST_LOOK_NS;
    group->rank = rank;
    group->size = size;
    group->sums = 0;
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("isb" ::: "memory");
#endif
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void wake(Group *group, uint32_t peer)
{
    _Atomic uint32_t *asleep = &group->members[peer].asleep;
    /* Orders the change made before against the look at the flag; its twin is in await(). */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(asleep, memory_order_relaxed) && atomic_exchange(asleep, 0))
        syscall(SYS_futex, asleep, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static int is_gone(const Group *group, uint32_t peer)
{
    struct pollfd socket = {.fd = group->sockets[peer], .events = POLLIN | POLLRDHUP};
    return poll(&socket, 1, 0) > 0;
}

static int reached(_Atomic uint32_t *count, uint32_t target)
{
    return (int32_t)(atomic_load_explicit(count, memory_order_acquire) - target) >= 0;
}

/* Looking pays only while the peer computes at this moment: where it did not, look less long. */
static int looked(Group *group, _Atomic uint32_t *count, uint32_t target)
{
    if (reached(count, target))
        return 1;
    int64_t end = now_ns() + group->look_ns;
    do {
        for (int look = 0; look < LOOKS; look++) {
            relax();
            if (reached(count, target)) {
                if (group->look_ns < LONGEST_LOOK_NS)
                    group->look_ns += group->look_ns / 2;
                return 1;
            }
        }
    } while (now_ns() < end);
    if (group->look_ns > SHORTEST_LOOK_NS)
        group->look_ns -= group->look_ns / 4;
    return 0;
}

/* Until `peer` has moved `count` to `target`. */
static int await(Group *group, uint32_t peer, _Atomic uint32_t *count, uint32_t target)
{
    if (looked(group, count, target))
        return DONE;
    _Atomic uint32_t *asleep = &group->members[group->rank].asleep;
    const struct timespec slice = {.tv_nsec = SLICE_NS};
    int64_t began = now_ns();
    for (;;) {
        atomic_store(asleep, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (!reached(count, target))
            syscall(SYS_futex, asleep, FUTEX_WAIT, 1, &slice, NULL, 0);
        int gone = is_gone(group, peer);
        if (reached(count, target)) {
            atomic_store_explicit(asleep, 0, memory_order_relaxed);
            return DONE;
        }
        if (gone)
            return GONE;
        if (now_ns() - began > group->patience_ns)
            return SILENT;
    }
}

static float *slot(const Group *group, uint32_t member, uint32_t sum)
{
    return group->slots + (2 * member + (sum & 1)) * (SLOT / sizeof(float));
}

static void add(float *restrict total, const float *restrict x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        total[i] += x[i];
}

static void add_two(float *restrict total, const float *restrict x, const float *restrict y,
                    size_t count)
{
    for (size_t i = 0; i < count; i++)
        total[i] = x[i] + y[i];
}

static int sum_piece(Group *group, const float *x, float *total, size_t count, uint32_t *culprit)
{
    uint32_t sum = ++group->sums;
    memcpy(slot(group, group->rank, sum), x, count * sizeof(float));
    atomic_store_explicit(&group->members[group->rank].begun, sum, memory_order_release);
    for (uint32_t peer = 0; peer < group->size; peer++)
        if (peer != group->rank)
            wake(group, peer);
    for (uint32_t peer = 0; peer < group->size; peer++) {
        int outcome = DONE;
        if (peer != group->rank)
            outcome = await(group, peer, &group->members[peer].begun, sum);
        if (outcome != DONE) {
            *culprit = peer;
            return outcome;
        }
        if (peer == 1)
            add_two(total, slot(group, 0, sum), slot(group, 1, sum), count);
        else if (peer > 1)
            add(total, slot(group, peer, sum), count);
    }
    return DONE;
}

/* Sum of every member's `x` into `total`, which may not overlap it. */
int tandem_sum(Group *group, const float *x, float *total, size_t count, uint32_t *culprit)
{
    while (count) {
        size_t piece = count < SLOT / sizeof(float) ? count : SLOT / sizeof(float);
        int outcome = sum_piece(group, x, total, piece, culprit);
        if (outcome != DONE)
            return outcome;
        x += piece, total += piece, count -= piece;
    }
    return DONE;
}

static Ring *ring(const Group *group, uint32_t from, uint32_t to)
{
    return group->rings + (size_t)from * group->size + to;
}

static uint32_t least(size_t a, size_t b)
{
    return (uint32_t)(a < b ? a : b);
}

/* Copies into the ring to `peer`; waits only when that is full. */
int tandem_put(Group *group, uint32_t peer, const unsigned char *bytes, size_t count)
{
    Ring *to = ring(group, group->rank, peer);
    while (count) {
        uint32_t written = atomic_load_explicit(&to->written, memory_order_relaxed);
        int outcome = await(group, peer, &to->taken, written + 1 - RING);
        if (outcome != DONE)
            return outcome;
        uint32_t room = RING - (written - atomic_load_explicit(&to->taken, memory_order_acquire));
        uint32_t place = written % RING;
        uint32_t piece = least(least(count, PIECE), least(room, RING - place));
        memcpy(to->bytes + place, bytes, piece);
        atomic_store_explicit(&to->written, written + piece, memory_order_release);
        wake(group, peer);
        bytes += piece, count -= piece;
    }
    return DONE;
}

int tandem_take(Group *group, uint32_t peer, unsigned char *bytes, size_t count)
{
    Ring *from = ring(group, peer, group->rank);
    while (count) {
        uint32_t taken = atomic_load_explicit(&from->taken, memory_order_relaxed);
        int outcome = await(group, peer, &from->written, taken + 1);
        if (outcome != DONE)
            return outcome;
        uint32_t there = atomic_load_explicit(&from->written, memory_order_acquire) - taken;
        uint32_t place = taken % RING;
        uint32_t piece = least(least(count, there), RING - place);
        memcpy(bytes, from->bytes + place, piece);
        atomic_store_explicit(&from->taken, taken + piece, memory_order_release);
        wake(group, peer);
        bytes += piece, count -= piece;
    }
    return DONE;
}
