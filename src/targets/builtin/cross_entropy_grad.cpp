// cross_entropy_grad: the gradient of cross_entropy at its logits, from the logsumexp that the forward saved:
//   grad[i] = ((p[i] - e / V) - (i is the label ? 1 - e : 0)) * grad_loss, p = exp(x - lse), e the label smoothing
// in the compute type, each step rounded, then once into the dtype of logits. Rows with label -100 have zeros.
// The bounds are of the largest logit, whose roundoff p carries in the saved lse; in a row that is sure and right p - 1
// is a roundoff itself, while every number of that row is as small.
#include <algorithm>

#include "builtin/cross_entropy.h"
#include "builtin/exponential_rows.h"
#include "builtin/operators.h"

namespace fusediff::builtin {
namespace {

using namespace kit;

constexpr int64_t kTile = 64;

constexpr char kSchema[] = R"({
  "name": "cross_entropy_grad",
  "paths": ["fused", "unfused"],
  "dims": {"R": {"range": [0, 64], "typical": [1, 4, 16]},
           "V": {"range": [1, 1024], "typical": [1, 2, 10, 64, 128, 512]}},
  "attrs": [{"name": "label_smoothing", "float": [0.01, 0.5], "default": 0.0, "also": [0.0]}],
  "where": ["V >= 1"],
  "inputs": [
    {"name": "grad_loss", "shape": ["R"], "dtype": "f32", "role": "cotangent", "layout": "any"},
    {"name": "logits", "shape": ["R", "V"], "dtype": ["f32", "f16", "bf16"], "role": "score", "layout": "any"},
    {"name": "target", "shape": ["R"], "dtype": ["i32", "i64"], "role": "index", "range": [0, "V - 1"], "also": [-100],
     "layout": "any"},
    {"name": "lse", "shape": ["R"], "dtype": "f32", "role": "saved", "layout": "any",
     "saved": {"op": "cross_entropy", "output": "lse", "inputs": {"logits": "logits", "target": "target"}}}],
  "outputs": [
    {"name": "probs",       "shape": ["R", "V"], "dtype": "f32", "stage": 1, "optional": true, "layout": "any",
     "bound": {"ulp": "7 * V + 64", "of": {"row_max_product": [["logits"], []]},
               "why": "M = max abs logits, log V <= V / 4 + 2. The saved lse is off by u (V + 1 + 3 log V + 11 M), x - lse by a rounding, or three where exp is written as exp2, of at most 2 M + log V, exp by 4 u: d = u (V + 5 + 6 log V + 17 M) of p. Where d < 1 that is p (e^d - 1) <= 1.72 d; beyond it p <= 1 either way, since no rounding takes lse below the largest logit. One ULP is at least u of M + 1. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}},
    {"name": "grad_logits", "shape": ["R", "V"], "dtype": "=logits", "stage": 2, "layout": "any",
     "bound": {"ulp": {"f32": "7 * V + 80", "f16": "3 + (7 * V + 80) / 8192", "bf16": "3 + (7 * V + 80) / 65536"},
               "of": {"row_max_product": [["grad_loss", "logits"], ["grad_loss"]]},
               "why": "g = abs grad_loss, v = 2^-24, u the unit roundoff of the dtype. The error of probs, and at most eight v of numbers up to 1 for e / V, the differences and the product, times g; the last rounding u g. One ULP is at least u of g (M + 1). Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 3.1 and 4.2"}}],
  "rows": {"dim": "R", "inputs": ["grad_loss", "logits", "target", "lse"], "outputs": "all"},
  "inplace": [["grad_logits", "logits"]],
  "gradient": {"of": "cross_entropy", "wrt": {"grad_logits": "logits"}, "cotangents": {"grad_loss": "loss"}}
})";

template <class T, class Label, class A = Compute<T>>
struct CrossEntropyGrad {
  Row<const A> grad_loss, lse;
  View<const T, 2> logits;
  Row<const Label> target;
  View<A, 2> probs;  // false: not wanted
  View<T, 2> grad_logits;
  A even, hit;  // what a class and the label are wanted to have: e / V, 1 - e

  int64_t rows() const { return logits.shape[0]; }
  int64_t classes() const { return logits.shape[1]; }
};

// REJECTED where a rule of the schema is broken.
template <class T, class Label>
CrossEntropyGrad<T, Label> read(const Call& call) {
  using A = Compute<T>;
  CrossEntropyGrad<T, Label> c{};
  c.logits = call.input("logits").view<const T, 2>();
  require(c.classes() >= 1, "logits must have at least one class");
  for (const char* name : {"grad_loss", "target", "lse"}) {
    call.input(name).require_shape({c.rows()});
  }
  call.output("probs").require_shape({c.rows(), c.classes()});
  call.output("grad_logits").require_shape({c.rows(), c.classes()});
  c.grad_loss = call.input("grad_loss").view<const A, 1>();
  c.lse = call.input("lse").view<const A, 1>();
  c.target = call.input("target").view<const Label, 1>();
  c.probs = call.output("probs").optional_view<A, 2>();
  c.grad_logits = call.output("grad_logits").view<T, 2>();
  const double smoothing = read_smoothing(call);
  c.even = static_cast<A>(smoothing / static_cast<double>(c.classes()));
  c.hit = static_cast<A>(1 - smoothing);
  return c;
}

// A tile of a row at a time.
template <class T, class Label>
void undo_tiles(const Call& call) {
  using A = Compute<T>;
  const CrossEntropyGrad<T, Label> c = read<T, Label>(call);
  A tile[kTile];
  for (int64_t r = 0; r < c.rows(); ++r) {
    const int64_t label = label_of(c.target, r, c.classes());
    const A gradient = c.grad_loss(r);
    for (int64_t from = 0; from < c.classes(); from += kTile) {
      const int64_t n = std::min(kTile, c.classes() - from);
      load(c.logits.at(r).part(from, n), tile);
      for (int64_t i = 0; i < n; ++i) {
        tile[i] -= c.lse(r);
      }
      exp_row(tile, n);
      if (c.probs) {
        store(c.probs.at(r).part(from, n), tile);
      }
      for (int64_t i = 0; i < n; ++i) {
        tile[i] -= c.even;
      }
      if (label >= from && label < from + n) {
        tile[label - from] -= c.hit;
      }
      for (int64_t i = 0; i < n; ++i) {
        tile[i] = label == kIgnored ? A(0) : tile[i] * gradient;
      }
      store(c.grad_logits.at(r).part(from, n), tile);
    }
  }
}

// The tensors of the composition, [R, V]: probabilities, and what is wanted of each class.
template <class A>
struct Buffers {
  A *probs, *wanted;

  Buffers(Carver& c, int64_t count) : probs(c.take<A>(count)), wanted(c.take<A>(count)) {}
};

// Softmax from lse; minus the even share, minus the one-hot labels, times the gradients, ignored rows filled.
template <class T, class Label>
void undo_composed(const Call& call) {
  using A = Compute<T>;
  const CrossEntropyGrad<T, Label> c = read<T, Label>(call);
  const int64_t classes = c.classes(), count = c.rows() * classes;
  Carver carver = call.workspace();
  const Buffers<A> b(carver, count);
  std::fill_n(b.wanted, count, A(0));
  for (int64_t r = 0; r < c.rows(); ++r) {
    load(c.logits.at(r), b.probs + r * classes);
    const int64_t label = label_of(c.target, r, classes);
    if (label != kIgnored) {
      b.wanted[r * classes + label] = c.hit;
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    b.probs[i] -= c.lse(i / classes);
  }
  exp_row(b.probs, count);
  for (int64_t r = 0; c.probs && r < c.rows(); ++r) {
    store(c.probs.at(r), b.probs + r * classes);
  }
  for (int64_t i = 0; i < count; ++i) {
    b.probs[i] = (b.probs[i] - c.even) - b.wanted[i];
  }
  for (int64_t i = 0; i < count; ++i) {
    b.probs[i] *= c.grad_loss(i / classes);
  }
  for (int64_t r = 0; r < c.rows(); ++r) {
    if (c.target(r) == kIgnored) {
      std::fill_n(b.probs + r * classes, classes, A(0));
    }
    store(c.grad_logits.at(r), b.probs + r * classes);
  }
}

void fused(const Call& call) {
  by_logits_and_labels(call, [&](auto type, auto label) {
    undo_tiles<typename decltype(type)::type, typename decltype(label)::type>(call);
  });
}

void unfused(const Call& call) {
  by_logits_and_labels(call, [&](auto type, auto label) {
    undo_composed<typename decltype(type)::type, typename decltype(label)::type>(call);
  });
}

size_t unfused_workspace(const Call& call) {
  Carver carver;
  by_logits_and_labels(call, [&](auto type, auto) {
    Buffers<Compute<typename decltype(type)::type>>(carver, call.input("logits").count());
  });
  return carver.bytes();
}

}  // namespace

constinit const Operator kCrossEntropyGrad{
    "cross_entropy_grad", kSchema, {{"fused", fused}, {"unfused", unfused, unfused_workspace}}};

}  // namespace fusediff::builtin
