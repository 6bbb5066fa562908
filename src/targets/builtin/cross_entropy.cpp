// cross_entropy: the loss of each row of logits [R, V] against its label, with label smoothing; rows with label -100
// are ignored: their loss is 0. Source: torch.nn.functional.cross_entropy, reduction none. In the compute type:
//   m = max x (NaN apart), z = x - m, l = log(sum exp(z)), lse = m + l, nll = l - z[label], smooth = l - (sum z) / V
//   loss = nll, or with smoothing e: (1 - e) * nll + e * smooth
// Sums over V are those of lanes.h. `terms` holds lse, nll (0 where ignored), smooth and loss of a row side by side.
// The bound of loss is of the largest logit: loss may be as small as it likes (a sure and right row) while its error is
// a roundoff of lse.
#include "builtin/cross_entropy.h"

#include <algorithm>
#include <limits>

#include "builtin/exponential_rows.h"
#include "builtin/lanes.h"
#include "builtin/logarithm.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 8 * kLanes;
constexpr int64_t kTerms = 4;

constexpr char kSchema[] = R"({
  "name": "cross_entropy",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 4, 16]},
           "V": {"range": [1, 1024], "typical": [1, 2, 10, 64, 128, 512]}},
  "attrs": [{"name": "label_smoothing", "float": [0.01, 0.5], "default": 0.0, "also": [0.0]}],
  "where": ["V >= 1"],
  "inputs": [
    {"name": "logits", "shape": ["R", "V"], "dtype": ["f32", "f16", "bf16"], "role": "score", "layout": "any"},
    {"name": "target", "shape": ["R"], "dtype": ["i32", "i64"], "role": "index", "range": [0, "V - 1"], "also": [-100],
     "layout": "any"}],
  "outputs": [
    {"name": "lse", "shape": ["R"], "dtype": "f32", "stage": 1, "layout": "any",
     "bound": {"ulp": "2 * V + 16", "of": "abs_inputs",
               "why": "S = lse of the magnitudes is at least |m| and log V. The sum of V positive terms is off by (V - 1) u of itself for the additions (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 4.2), 2 u for exp and, for z, u times the mean of |z| weighted by exp(z), which is at most log V; up to 8 u |m| more where m is multiplied by log2(e) before it is taken off. Its logarithm is off by as much, absolutely, so by (V + 1) u / 0.69 + 9 u of S where V >= 2 and by nothing where V is 1; log and the last sum add 3 u S"}},
    {"name": "terms", "shape": ["R", "4"], "dtype": "f32", "stage": 2, "optional": true, "layout": "any",
     "bound": {"ulp": "5 * V + 36", "of": "row_max",
               "why": "smooth is the cross entropy of even odds with the row's, so W, the largest of the row, is at least log V, and |m| <= |lse| + log V <= 2 W. The logarithm is off by (1.45 V + 17) u W as in lse with W in the place of S; the sum of z or of x by V u times the mean magnitude, at most 3 V u W; the differences and products that follow by at most ten u of numbers below 3 W. For rows that end finite"}},
    {"name": "loss", "shape": ["R"], "dtype": "f32", "stage": 3, "layout": "any",
     "bound": {"ulp": "3 * V + 32", "of": {"row_max_product": [["logits"], []]},
               "why": "M = max abs logits, z = x - m at most 2 M, log V <= V / 4 + 2. The logarithm is off by (V + 1) u + u log V, as in lse, and 8 u M where exp is written as exp2; l by 2 u log V more; z by 2 u M, its sum / V by (V + 2) u 2 M in any order; the difference and the mixing of nll and smooth by at most five roundings of 2 M + log V: below u (3 V + 20) + u M (2 V + 26). One ULP is at least u of M + 1. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "rows": {"dim": "R", "inputs": ["logits", "target"], "outputs": "all"}
})";

template <class T, class Label, class A = Compute<T>>
struct CrossEntropy {
  View<const T, 2> logits;
  Row<const Label> target;
  Row<A> lse, loss;
  View<A, 2> terms;  // false: not wanted
  A smoothing, rest;

  int64_t rows() const { return logits.shape[0]; }
  int64_t classes() const { return logits.shape[1]; }
};

// REJECTED where a rule of the schema is broken.
template <class T, class Label>
CrossEntropy<T, Label> read(const Call& call) {
  using A = Compute<T>;
  CrossEntropy<T, Label> c{};
  c.logits = call.input("logits").view<const T, 2>();
  require(c.classes() >= 1, "logits must have at least one class");
  call.input("target").require_shape({c.rows()});
  call.output("lse").require_shape({c.rows()});
  call.output("loss").require_shape({c.rows()});
  call.output("terms").require_shape({c.rows(), kTerms});
  c.target = call.input("target").view<const Label, 1>();
  c.lse = call.output("lse").view<A, 1>();
  c.loss = call.output("loss").view<A, 1>();
  c.terms = call.output("terms").optional_view<A, 2>();
  const double smoothing = read_smoothing(call);
  c.smoothing = static_cast<A>(smoothing);
  c.rest = static_cast<A>(1 - smoothing);
  return c;
}

// One row in registers: the largest, then exp and both sums a tile at a time, then the loss.
template <class T, class Label, class A>
void lose_row(const CrossEntropy<T, Label>& c, int64_t r, A* row) {
  const int64_t classes = c.classes();
  const int64_t label = label_of(c.target, r, classes);
  load(c.logits.at(r), row);
  A most = -std::numeric_limits<A>::infinity();
  for (int64_t i = 0; i < classes; ++i) {
    most = row[i] > most ? row[i] : most;
  }
  LaneVector<A> exps, shifts;
  A at_label = 0;
  for (int64_t from = 0; from < classes; from += kTile) {
    const int64_t size = std::min(kTile, classes - from);
    A* tile = row + from;
    for (int64_t i = 0; i < size; ++i) {
      tile[i] -= most;
    }
    at_label = label >= from && label < from + size ? tile[label - from] : at_label;
    int64_t i = 0;
    for (; i + kLanes <= size; i += kLanes) {
      shifts.v += LaneVector<A>(tile + i).v;
    }
    shifts.v += LaneVector<A>(tile + i, size - i).v;
    exp_row(tile, size);
    for (i = 0; i + kLanes <= size; i += kLanes) {
      exps.v += LaneVector<A>(tile + i).v;
    }
    exps.v += LaneVector<A>(tile + i, size - i).v;
  }
  const A log_sum = log(exps.fold());
  const A lse = most + log_sum;
  const A nll = label == kIgnored ? A(0) : log_sum - at_label;
  const A smooth = log_sum - shifts.fold() / static_cast<A>(classes);
  const A mixed = c.smoothing == A(0) ? nll : c.rest * nll + c.smoothing * smooth;
  const A loss = label == kIgnored ? A(0) : mixed;
  c.lse(r) = lse;
  c.loss(r) = loss;
  const A terms[kTerms] = {lse, nll, smooth, loss};
  if (c.terms) {
    store(c.terms.at(r), terms);
  }
}

template <class T, class Label>
void lose_rows(const Call& call) {
  const CrossEntropy<T, Label> c = read<T, Label>(call);
  Carver carver = call.workspace();
  Compute<T>* row = carver.take<Compute<T>>(c.classes());
  for (int64_t r = 0; r < c.rows(); ++r) {
    lose_row(c, r, row);
  }
}

// The tensors of the composition: shifted logits and their exp [R, V], and numbers of the rows [R].
template <class A>
struct Buffers {
  A *shifted, *exps, *most, *log_sum, *nll, *smooth;

  Buffers(Carver& c, int64_t rows, int64_t classes)
      : shifted(c.take<A>(rows * classes)),
        exps(c.take<A>(rows * classes)),
        most(c.take<A>(rows)),
        log_sum(c.take<A>(rows)),
        nll(c.take<A>(rows)),
        smooth(c.take<A>(rows)) {}
};

// Maximum, subtraction, exp, sum, log.
template <class T, class Label, class A>
void log_softmax(const CrossEntropy<T, Label>& c, const Buffers<A>& b) {
  const int64_t rows = c.rows(), classes = c.classes();
  for (int64_t r = 0; r < rows; ++r) {
    A* row = b.shifted + r * classes;
    load(c.logits.at(r), row);
    b.most[r] = -std::numeric_limits<A>::infinity();
    for (int64_t i = 0; i < classes; ++i) {
      b.most[r] = row[i] > b.most[r] ? row[i] : b.most[r];
    }
  }
  for (int64_t i = 0; i < rows * classes; ++i) {
    b.shifted[i] -= b.most[i / classes];
  }
  std::copy_n(b.shifted, rows * classes, b.exps);
  exp_row(b.exps, rows * classes);
  for (int64_t r = 0; r < rows; ++r) {
    b.log_sum[r] = log(lane_sum<A>(classes, [&](int64_t i) { return b.exps[r * classes + i]; }));
  }
}

// log_softmax, gather at the labels, mean over the classes, mixture of the two; ignored rows filled with zeros.
template <class T, class Label>
void lose_composed(const Call& call) {
  using A = Compute<T>;
  const CrossEntropy<T, Label> c = read<T, Label>(call);
  const int64_t rows = c.rows(), classes = c.classes();
  Carver carver = call.workspace();
  const Buffers<A> b(carver, rows, classes);
  log_softmax(c, b);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t label = label_of(c.target, r, classes);
    b.nll[r] = label == kIgnored ? A(0) : b.log_sum[r] - b.shifted[r * classes + label];
  }
  for (int64_t r = 0; r < rows; ++r) {
    const A sum = lane_sum<A>(classes, [&](int64_t i) { return b.shifted[r * classes + i]; });
    b.smooth[r] = b.log_sum[r] - sum / static_cast<A>(classes);
  }
  for (int64_t r = 0; r < rows; ++r) {
    c.lse(r) = b.most[r] + b.log_sum[r];
    if (c.target(r) == kIgnored) {
      c.loss(r) = A(0);
    } else if (c.smoothing == A(0)) {
      c.loss(r) = b.nll[r];
    } else {
      c.loss(r) = c.rest * b.nll[r] + c.smoothing * b.smooth[r];
    }
  }
  for (int64_t r = 0; c.terms && r < rows; ++r) {
    c.terms(r, 0) = c.lse(r);
    c.terms(r, 1) = b.nll[r];
    c.terms(r, 2) = b.smooth[r];
    c.terms(r, 3) = c.loss(r);
  }
}

void fused(const Call& call) {
  by_logits_and_labels(call, [&](auto type, auto label) {
    lose_rows<typename decltype(type)::type, typename decltype(label)::type>(call);
  });
}

void unfused(const Call& call) {
  by_logits_and_labels(call, [&](auto type, auto label) {
    lose_composed<typename decltype(type)::type, typename decltype(label)::type>(call);
  });
}

size_t fused_workspace(const Call& call) {
  Carver carver;
  by_logits_and_labels(call, [&](auto type, auto) {
    carver.take<Compute<typename decltype(type)::type>>(call.input("logits").size(1));
  });
  return carver.bytes();
}

size_t unfused_workspace(const Call& call) {
  Carver carver;
  by_logits_and_labels(call, [&](auto type, auto) {
    Buffers<Compute<typename decltype(type)::type>>(carver, call.input("logits").size(0), call.input("logits").size(1));
  });
  return carver.bytes();
}

}  // namespace

constinit const Operator kCrossEntropy{
    "cross_entropy", kSchema, {{"fused", fused, fused_workspace}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
