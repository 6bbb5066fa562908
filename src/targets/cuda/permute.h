// moe_permute. Fused: one kernel, a block of threads for each pick counts the picks before it, writes its place in the
// map and copies its row. Unfused: keys, a bitonic sort in passes over global memory, gather, inverse of the order.
#pragma once

#include "cuda/row_map.h"

namespace fusediff::cuda {

template <class T>
struct Permute {
  int64_t tokens, picks, rows, columns;
  Strided<const T, 2> from;
  Strided<const int32_t, 2> indices;
  Strided<int32_t, 2> map;
  Strided<T, 2> out;

  int64_t count() const { return tokens * picks; }
};

// REJECTED where a rule of the schema is broken (readers.cpp).
template <class T>
Permute<T> read_permute(const kit::Call& call);

template <class T, class Stream>
void permute_fused(Stream& stream, const kit::Call& call) {
  using Block = typename Stream::Block;
  const Permute<T> p = read_permute<T>(call);
  const int64_t count = p.count();
  stream.blocks(
      count, kThreads * sizeof(int64_t), FUSEDIFF_KERNEL(const Block& block, int64_t flat) {
        const int32_t expert = p.indices(flat / p.picks, flat % p.picks);
        int64_t* before = reinterpret_cast<int64_t*>(block.shared());
        block.each([&](int lane) {
          int64_t found = 0;
          for (int64_t other = lane; other < count; other += kThreads) {
            const int32_t theirs = p.indices(other / p.picks, other % p.picks);
            found += theirs < expert || (theirs == expert && other < flat) ? 1 : 0;
          }
          before[lane] = found;
        });
        for (int width = kThreads / 2; width > 0; width /= 2) {
          block.each([&](int lane) {
            if (lane < width) {
              before[lane] += before[lane + width];
            }
          });
        }
        block.each([&](int lane) {
          const int64_t row = before[0];
          if (lane == 0) {
            p.map(flat % p.picks, flat / p.picks) = row < p.rows ? static_cast<int32_t>(row) : -1;
          }
          for (int64_t h = lane; row < p.rows && h < p.columns; h += kThreads) {
            p.out(row, h) = p.from(flat / p.picks, h);
          }
        });
      });
}

// The next power of two: what a bitonic sort wants.
inline int64_t padded(int64_t count) {
  int64_t size = 1;
  while (size < count) {
    size *= 2;
  }
  return size;
}

template <class Stream>
void sort_keys(Stream& stream, uint64_t* keys, int64_t size) {
  for (int64_t run = 2; run <= size; run *= 2) {
    for (int64_t step = run / 2; step > 0; step /= 2) {
      stream.elements(
          size / 2, FUSEDIFF_KERNEL(int64_t i) {
            const int64_t low = i / step * step * 2 + i % step;
            const int64_t high = low + step;
            const bool rising = (low & run) == 0;
            const uint64_t a = keys[low];
            const uint64_t b = keys[high];
            if ((a > b) == rising && a != b) {
              keys[low] = b;
              keys[high] = a;
            }
          });
    }
  }
}

template <class T, class Stream>
void permute_unfused(Stream& stream, const kit::Call& call) {
  const Permute<T> p = read_permute<T>(call);
  const int64_t count = p.count(), size = padded(count), columns = p.columns;
  uint64_t* keys = call.workspace().take<uint64_t>(size);
  stream.elements(
      size, FUSEDIFF_KERNEL(int64_t i) {
        keys[i] = ~uint64_t{0};
        if (i < count) {
          const uint32_t expert = static_cast<uint32_t>(p.indices(i / p.picks, i % p.picks)) ^ 0x80000000u;
          keys[i] = static_cast<uint64_t>(expert) << 32 | static_cast<uint64_t>(i);
        }
      });
  sort_keys(stream, keys, size);
  stream.elements(
      p.rows * columns, FUSEDIFF_KERNEL(int64_t i) {
        const int64_t flat = static_cast<int64_t>(keys[i / columns] & 0xffffffffu);
        p.out(i / columns, i % columns) = p.from(flat / p.picks, i % columns);
      });
  stream.elements(
      count, FUSEDIFF_KERNEL(int64_t row) {
        const int64_t flat = static_cast<int64_t>(keys[row] & 0xffffffffu);
        p.map(flat % p.picks, flat / p.picks) = row < p.rows ? static_cast<int32_t>(row) : -1;
      });
}

inline size_t permute_unfused_workspace(const kit::Call& call) {
  kit::Carver carver;
  carver.take<uint64_t>(padded(call.input("indices").count()));
  return carver.bytes();
}

}  // namespace fusediff::cuda
