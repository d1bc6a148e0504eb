#include "team.h"

#include <algorithm>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

namespace tandem {
namespace {

constexpr uint64_t SPIN_TICKS = 100'000;           // some 40 microseconds
constexpr int64_t WINDOW = 10'000'000;             // nanoseconds of work that are judged together
constexpr double MOST_LOST = 0.25;                 // of a window
constexpr int64_t FIRST_PENALTY = 100'000'000, LAST_PENALTY = 3'200'000'000;

int64_t now() {
    timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1'000'000'000 + at.tv_nsec;
}

}  // namespace

Team::~Team() { stop(); }

void Team::resize(int size) {
    if (size < 1) size = 1;
    if (size == size_) return;
    stop();
    size_ = size;
    uint32_t seen = epoch_.load();
    for (int member = 1; member < size; member++)
        threads_.emplace_back([this, member, seen] { work(member, seen); });
}

void Team::stop() {
    stopping_ = true;
    epoch_.fetch_add(1);
    wake(epoch_);
    for (auto& thread : threads_) thread.join();
    threads_.clear();
    stopping_ = false;
    size_ = 1;
}

void Team::work(int member, uint32_t seen) {
    while (true) {
        wait(epoch_, seen);
        seen = epoch_.load(std::memory_order_acquire);
        if (stopping_) return;
        body_(context_, member);
        meet();
    }
}

void Team::run(Body body, void* context) {
    int64_t began = now();
    next_.store(0, std::memory_order_relaxed);
    if (size_ == 1 || began < alone_until_) {
        active_ = 1;
        body(context, 0);
        return;
    }
    active_ = size_;
    body_ = body;
    context_ = context;
    epoch_.fetch_add(1);
    wake(epoch_);
    body(context, 0);
    meet();
    judge(now() - began);
}

void Team::judge(int64_t spent) {
    spent_ += spent;
    if (spent_ < WINDOW) return;
    if (static_cast<double>(lost_.load()) > MOST_LOST * static_cast<double>(spent_)) {
        penalty_ = penalty_ ? std::min(2 * penalty_, LAST_PENALTY) : FIRST_PENALTY;
        alone_until_ = now() + penalty_;
    } else {
        penalty_ = 0;
    }
    spent_ = 0;
    lost_.store(0);
}

void Team::meet() {
    if (active_ == 1) {
        next_.store(0, std::memory_order_relaxed);
        return;
    }
    uint32_t phase = phase_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == active_) {
        next_.store(0, std::memory_order_relaxed);
        arrived_.store(0, std::memory_order_relaxed);
        phase_.fetch_add(1);
        wake(phase_);
        return;
    }
    uint64_t first = __rdtsc();
    while (phase_.load(std::memory_order_acquire) == phase) {
        if (__rdtsc() - first > SPIN_TICKS) {
            int64_t slept = now();
            wait(phase_, phase);
            lost_.fetch_add(now() - slept, std::memory_order_relaxed);
            return;
        }
        _mm_pause();
    }
}

void Team::wait(std::atomic<uint32_t>& word, uint32_t old) {
    uint64_t first = __rdtsc();
    while (word.load(std::memory_order_acquire) == old) {
        if (__rdtsc() - first < SPIN_TICKS) {
            _mm_pause();
            continue;
        }
        sleepers_.fetch_add(1);
        // The kernel compares again, so that no wake between is missed.
        syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, old, nullptr,
                nullptr, 0);
        sleepers_.fetch_sub(1);
    }
}

void Team::wake(std::atomic<uint32_t>& word) {
    if (sleepers_.load() > 0)
        syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT32_MAX,
                nullptr, nullptr, 0);
}

}  // namespace tandem
