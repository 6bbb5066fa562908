#include "import/stream.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "model/tensor.h"

namespace fusediff {
namespace {

std::uint64_t product(const std::vector<std::int64_t>& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::uint64_t>(size);
  return count;
}

bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// One element in the other dtype; false: it is an integer that does not fit.
bool convert(DType from, std::uint64_t bits, DType to, std::uint64_t& out, bool& changed) {
  if (is_float(from)) {
    const double value = float_value(from, bits);
    out = round_to_bits(to, value);
    changed = !same_number(float_value(to, out), value);
    return true;
  }
  const std::int64_t value = integer_value(from, bits);
  if (is_float(to)) {
    out = round_to_bits(to, static_cast<double>(value));
    const double back = float_value(to, out);
    changed = !(std::fabs(back) < 0x1p63) || static_cast<std::int64_t>(back) != value;
    return true;
  }
  const IntegerRange range = integer_range(to);
  if (value < range.low || value > range.high) return false;
  out = static_cast<std::uint64_t>(value);
  if (size_of(to) < 8) out &= (std::uint64_t{1} << (8 * size_of(to))) - 1;
  changed = false;
  return true;
}

class Output {
 public:
  Output(const std::filesystem::path& file, std::uint64_t offset) : file_(file), at_(offset) {
    descriptor_ = ::open(file.c_str(), O_WRONLY | O_CLOEXEC);
  }
  ~Output() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  Status write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at_));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return user_error(file_.string() + ": cannot write: " + std::strerror(errno));
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      at_ += static_cast<std::uint64_t>(count);
    }
    return {};
  }

 private:
  std::filesystem::path file_;
  std::uint64_t at_;
  int descriptor_ = -1;
};

class Stream {
 public:
  Stream(const TensorPlan& plan, std::shared_ptr<StreamCount> count)
      : plan_(plan), count_(std::move(count)), output_(plan.file, plan.offset) {
    if (plan_.high < 0) {
      plan_.axis = 0;
      plan_.low = 0;
      plan_.high = plan_.shape.empty() ? 1 : plan_.shape[0];
    }
    size_ = size_of(plan_.from);
    axis_ = plan_.shape.empty() ? 1 : static_cast<std::uint64_t>(plan_.shape[plan_.axis]);
    for (std::size_t d = plan_.axis + 1; d < plan_.shape.size(); ++d)
      inner_ *= static_cast<std::uint64_t>(plan_.shape[d]);
    total_ = product(plan_.file_shape) * size_;
    whole_ = plan_.fortran && plan_.file_shape.size() > 1;
  }

  Status take(std::span<const std::byte> piece) {
    if (!whole_ && held_.empty() && piece.size() % size_ == 0) return elements(piece);
    held_.insert(held_.end(), piece.begin(), piece.end());
    if (whole_) {
      if (held_.size() < total_) return {};
      return elements(row_major());
    }
    const std::size_t full = held_.size() / size_ * size_;
    Status done = elements(std::span(held_).first(full));
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(full));
    return done;
  }

 private:
  // The tensor that is held, with its last index fastest.
  std::vector<std::byte> row_major() const {
    std::vector<std::byte> out(held_.size());
    const std::vector<std::int64_t>& shape = plan_.file_shape;
    std::vector<std::int64_t> at(shape.size(), 0), step(shape.size(), 1);
    for (std::size_t d = 1; d < shape.size(); ++d) step[d] = step[d - 1] * shape[d - 1];
    std::int64_t from = 0;
    for (std::size_t to = 0; to < out.size(); to += size_) {
      std::memcpy(out.data() + to, held_.data() + static_cast<std::size_t>(from) * size_, size_);
      for (std::size_t d = shape.size(); d-- > 0;) {
        from += step[d];
        if (++at[d] < shape[d]) break;
        from -= step[d] * shape[d];
        at[d] = 0;
      }
    }
    return out;
  }

  // Whole elements, the next ones in row-major order.
  Status elements(std::span<const std::byte> bytes) {
    const std::uint64_t block = axis_ * inner_;
    const std::uint64_t low = static_cast<std::uint64_t>(plan_.low) * inner_;
    const std::uint64_t high = static_cast<std::uint64_t>(plan_.high) * inner_;
    while (!bytes.empty()) {
      const std::uint64_t in_block = index_ % block;
      const bool keep = in_block >= low && in_block < high;
      const std::uint64_t end = in_block < low ? low : keep ? high : block;
      const std::uint64_t run = std::min<std::uint64_t>(end - in_block, bytes.size() / size_);
      if (keep) {
        if (Status wrote = write(bytes.first(run * size_)); !wrote.ok()) return wrote;
      }
      bytes = bytes.subspan(run * size_);
      index_ += run;
    }
    return {};
  }

  Status write(std::span<const std::byte> bytes) {
    const std::size_t count = bytes.size() / size_;
    count_->elements += count;
    if (!plan_.swapped && plan_.from == plan_.to) return output_.write(bytes);
    const std::size_t to_size = size_of(plan_.to);
    made_.resize(count * to_size);
    std::byte element[8];
    for (std::size_t i = 0; i < count; ++i) {
      const std::byte* const from = bytes.data() + i * size_;
      for (std::size_t b = 0; b < size_; ++b) element[b] = from[plan_.swapped ? size_ - 1 - b : b];
      std::uint64_t bits = load_bits(plan_.from, element);
      if (plan_.from != plan_.to) {
        bool changed = false;
        const std::uint64_t held = bits;
        if (!convert(plan_.from, held, plan_.to, bits, changed)) {
          return user_error(std::to_string(integer_value(plan_.from, held)) + " does not fit " +
                            std::string(name_of(plan_.to)));
        }
        count_->changed += changed ? 1 : 0;
      }
      store_bits(plan_.to, bits, made_.data() + i * to_size);
    }
    return output_.write(made_);
  }

  TensorPlan plan_;
  std::shared_ptr<StreamCount> count_;
  Output output_;
  std::size_t size_ = 1;
  std::uint64_t axis_ = 1, inner_ = 1, total_ = 0;
  bool whole_ = false;
  std::uint64_t index_ = 0;
  std::vector<std::byte> held_, made_;
};

}  // namespace

std::vector<std::int64_t> kept_shape(const TensorPlan& plan) {
  std::vector<std::int64_t> shape = plan.shape;
  if (plan.high >= 0) shape[plan.axis] = plan.high - plan.low;
  return shape;
}

std::uint64_t kept_bytes(const TensorPlan& plan) { return product(kept_shape(plan)) * size_of(plan.to); }

bool converts(DType from, DType to) { return !is_float(from) || is_float(to); }

PieceSink stream_into(const TensorPlan& plan, std::shared_ptr<StreamCount> count) {
  const auto stream = std::make_shared<Stream>(plan, std::move(count));
  return [stream](std::span<const std::byte> piece) { return stream->take(piece); };
}

}  // namespace fusediff
