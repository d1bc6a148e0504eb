// Scratch memory that is kept from one call to the next.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <new>
#include <vector>

namespace tandem {

class Arena {
   public:
    ~Arena() { clear(); }

    // From here on everything handed out before may be handed out again.
    void reset() {
        if (chunks_.size() > 1) {  // one that holds all that was wanted
            int64_t whole = wanted_;
            clear();
            grow(whole);
        }
        used_ = 0;
        wanted_ = 0;
    }

    template <class T>
    T* take(int64_t count) {
        int64_t bytes = (count * static_cast<int64_t>(sizeof(T)) + 127) / 64 * 64;
        wanted_ += bytes;
        if (chunks_.empty() || used_ + bytes > chunks_.back().size) grow(bytes);
        char* at = chunks_.back().start + used_;
        used_ += bytes;
        return reinterpret_cast<T*>(at);
    }

   private:
    struct Chunk {
        char* start;
        int64_t size;
    };

    void grow(int64_t bytes) {
        int64_t size = (bytes + 65535) / 65536 * 65536;
        void* start = std::aligned_alloc(64, static_cast<size_t>(size));
        if (start == nullptr) throw std::bad_alloc();
        chunks_.push_back({static_cast<char*>(start), size});
        used_ = 0;
    }

    void clear() {
        for (auto& chunk : chunks_) std::free(chunk.start);
        chunks_.clear();
    }

    std::vector<Chunk> chunks_;
    int64_t used_ = 0, wanted_ = 0;
};

}  // namespace tandem
