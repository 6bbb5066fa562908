// moe_gating_topk in one kernel: a block of threads for each token, all in shared memory. The k best are found one
// after another, each by a tree over the threads.
#pragma once

#include "cuda/gating.h"

namespace fusediff::cuda {

// A block's shared memory.
template <class A>
struct GatingBlock {
  A *score, *rank, *group, *weight, *partial;  // [experts], [experts], [groups], [k], [kThreads]
  int64_t* key;                                // [kThreads]: the best of a thread, and where it stands
  int32_t *at, *pick;                          // [kThreads], [k]
  uint8_t* taken;                              // [experts]

  template <class T>
  static FUSEDIFF_HD size_t bytes(const Gating<T>& g) {
    const int64_t values = 2 * g.experts + g.groups + g.k + kThreads;
    return static_cast<size_t>(values + 1) * sizeof(A) + kThreads * (sizeof(int64_t) + sizeof(int32_t)) +
           static_cast<size_t>(g.k) * sizeof(int32_t) + static_cast<size_t>(g.experts);
  }

  template <class T>
  FUSEDIFF_HD GatingBlock(unsigned char* memory, const Gating<T>& g) {
    key = reinterpret_cast<int64_t*>(memory);
    score = reinterpret_cast<A*>(key + kThreads);
    rank = score + g.experts;
    group = rank + g.experts;
    weight = group + g.groups;
    partial = weight + g.k;
    at = reinterpret_cast<int32_t*>(partial + kThreads);
    pick = at + kThreads;
    taken = reinterpret_cast<uint8_t*>(pick + g.k);
  }
};

template <class A, class Block>
FUSEDIFF_HD void softmax_block(const Block& block, const GatingBlock<A>& s, int64_t n) {
  block.each([&](int lane) {
    A most = minus_infinity<A>();
    for (int64_t e = lane; e < n; e += kThreads) {
      most = s.score[e] > most ? s.score[e] : most;
    }
    s.partial[lane] = most;
  });
  for (int width = kThreads / 2; width > 0; width /= 2) {
    block.each([&](int lane) {
      if (lane < width && s.partial[lane + width] > s.partial[lane]) {
        s.partial[lane] = s.partial[lane + width];
      }
    });
  }
  block.each([&](int lane) {
    for (int64_t e = lane; e < n; e += kThreads) {
      s.score[e] = exponential(s.score[e] - s.partial[0]);
    }
  });
  block.each([&](int lane) {
    A sum = 0;
    for (int64_t e = lane; lane < kLanes && e < n; e += kLanes) {
      sum += s.score[e];
    }
    s.partial[lane] = sum;
  });
  block.each([&](int lane) {
    if (lane == 0) {
      s.partial[kLanes] = fold_lanes(s.partial);
    }
  });
  block.each([&](int lane) {
    for (int64_t e = lane; e < n; e += kThreads) {
      s.score[e] /= s.partial[kLanes];
    }
  });
}

// Ranks of the groups that are not among the best become -inf.
template <class T, class A, class Block>
FUSEDIFF_HD void drop_groups(const Block& block, const Gating<T>& g, const GatingBlock<A>& s) {
  block.each([&](int lane) {
    for (int64_t i = lane; i < g.groups; i += kThreads) {
      s.group[i] = group_score(s.rank + i * g.group_size, g.group_size, g.two);
    }
  });
  block.each([&](int lane) {
    for (int64_t e = lane; e < g.experts; e += kThreads) {
      if (is_dropped(s.group, g.groups, g.kept_groups, e / g.group_size)) {
        s.rank[e] = minus_infinity<A>();
      }
    }
  });
}

// pick[j] = the best rank that is not taken yet, ties to the lower index.
template <class T, class A, class Block>
FUSEDIFF_HD void pick_one(const Block& block, const Gating<T>& g, const GatingBlock<A>& s, int64_t j) {
  block.each([&](int lane) {
    s.at[lane] = -1;
    for (int64_t e = lane; e < g.experts; e += kThreads) {
      const int64_t key = order_key(s.rank[e]);
      if (s.taken[e] == 0 && (s.at[lane] < 0 || key > s.key[lane])) {
        s.key[lane] = key;
        s.at[lane] = static_cast<int32_t>(e);
      }
    }
  });
  for (int width = kThreads / 2; width > 0; width /= 2) {
    block.each([&](int lane) {
      if (lane >= width || s.at[lane + width] < 0) {
        return;
      }
      const int other = lane + width;
      const bool better =
          s.at[lane] < 0 || s.key[other] > s.key[lane] || (s.key[other] == s.key[lane] && s.at[other] < s.at[lane]);
      if (better) {
        s.key[lane] = s.key[other];
        s.at[lane] = s.at[other];
      }
    });
  }
  block.each([&](int lane) {
    if (lane == 0) {
      s.pick[j] = s.at[0];
      s.weight[j] = s.score[s.at[0]];
      s.taken[s.at[0]] = 1;
    }
  });
}

// y, and the outputs that are wanted.
template <class T, class A, class Block>
FUSEDIFF_HD void write_token(const Block& block, const Gating<T>& g, const GatingBlock<A>& s, int64_t t) {
  block.each([&](int lane) {
    if (lane == 0) {
      A sum = 0;
      for (int64_t j = 0; j < g.k; ++j) {
        sum += s.weight[j];
      }
      s.partial[0] = sum + g.eps;
    }
  });
  block.each([&](int lane) {
    for (int64_t j = lane; j < g.k; j += kThreads) {
      const A weight = g.divide ? s.weight[j] / s.partial[0] : s.weight[j];
      g.y(t, j) = as_dtype<T>(weight * g.scale);
      g.expert_idx(t, j) = s.pick[j];
    }
    for (int64_t e = lane; g.norm_out.present() && e < g.experts; e += kThreads) {
      g.norm_out(t, e) = s.score[e];
    }
    for (int64_t e = lane; g.rank.present() && e < g.experts; e += kThreads) {
      g.rank(t, e) = s.rank[e];
    }
  });
}

template <class T, class Stream, class A = Compute<T>>
void gating_fused(Stream& stream, const kit::Call& call) {
  using Block = typename Stream::Block;
  const Gating<T> g = read_gating<T>(call);
  const size_t bytes = GatingBlock<A>::bytes(g);
  if (bytes > Stream::kSharedBytes) {
    kit::unsupported("a token needs ", static_cast<int64_t>(bytes), " bytes of shared memory");
  }
  stream.blocks(
      g.tokens, bytes, FUSEDIFF_KERNEL(const Block& block, int64_t t) {
        const GatingBlock<A> s(block.shared(), g);
        block.each([&](int lane) {
          for (int64_t e = lane; e < g.experts; e += kThreads) {
            s.score[e] = g.softmax ? widen(g.x(t, e)) : sigmoid(widen(g.x(t, e)));
            s.taken[e] = 0;
          }
        });
        if (g.softmax) {
          softmax_block(block, s, g.experts);
        }
        block.each([&](int lane) {
          for (int64_t e = lane; e < g.experts; e += kThreads) {
            s.rank[e] = g.bias.present() ? s.score[e] + widen(g.bias(e)) : s.score[e];
          }
        });
        if (g.kept_groups < g.groups) {
          drop_groups(block, g, s);
        }
        for (int64_t j = 0; j < g.k; ++j) {
          pick_one(block, g, s, j);
        }
        write_token(block, g, s, t);
      });
}

}  // namespace fusediff::cuda
