// A team of threads that wait passively.
//
// Waits spin for some microseconds and sleep then, so that a neighbour who wants the processor gets
// it; and while the team loses much of its time to such waits it works alone, since one thread that
// runs is faster than two that take turns.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tandem {

class Team {
   public:
    using Body = void (*)(void* context, int member);

    ~Team();
    void resize(int size);
    int size() const { return size_; }
    int active() const { return active_; }
    // Calls body(context, member) on every active member and returns when all are done.
    void run(Body body, void* context);
    // Of the members in `run`: none goes on before all are here. Begins a new round of `take`.
    void meet();
    // The next `count` pieces of a round of work; the first of them.
    int64_t take(int64_t count) { return next_.fetch_add(count, std::memory_order_relaxed); }

   private:
    void work(int member, uint32_t seen);
    void stop();
    void judge(int64_t spent);
    void wait(std::atomic<uint32_t>& word, uint32_t old);
    void wake(std::atomic<uint32_t>& word);

    std::vector<std::thread> threads_;
    int size_ = 1, active_ = 1;
    Body body_ = nullptr;
    void* context_ = nullptr;
    bool stopping_ = false;
    alignas(64) std::atomic<uint32_t> epoch_{0};
    alignas(64) std::atomic<uint32_t> phase_{0};
    alignas(64) std::atomic<int> arrived_{0};
    alignas(64) std::atomic<int64_t> next_{0};
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<int64_t> lost_{0};
    int64_t spent_ = 0, alone_until_ = 0, penalty_ = 0;
};

}  // namespace tandem
