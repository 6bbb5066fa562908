#include "import/npy.h"

#include <array>
#include <utility>

#include "import/literal.h"
#include "model/call.h"
#include "model/quote.h"

namespace fusediff {
namespace {

constexpr std::size_t kMaxHeader = std::size_t{1} << 16;  // NumPy itself writes a few hundred bytes
constexpr std::size_t kMaxRank = 32;

struct Known {
  std::string_view descr;
  DType dtype;
};
// Without the byte order; ml_dtypes by name.
constexpr std::array kKnown = {
    Known{"f8", DType::kF64},
    Known{"f4", DType::kF32},
    Known{"f2", DType::kF16},
    Known{"i8", DType::kI64},
    Known{"i4", DType::kI32},
    Known{"i2", DType::kI16},
    Known{"i1", DType::kI8},
    Known{"u1", DType::kU8},
    Known{"b1", DType::kBool},
    Known{"?", DType::kBool},
    Known{"float64", DType::kF64},
    Known{"float32", DType::kF32},
    Known{"float16", DType::kF16},
    Known{"bfloat16", DType::kBF16},
    Known{"float8_e4m3fn", DType::kF8E4M3FN},
    Known{"float8_e5m2", DType::kF8E5M2},
};

std::size_t raw_width(std::string_view plain) {
  for (const auto& [descr, size] : {std::pair<std::string_view, std::size_t>{"V1", 1},
                                    {"V2", 2},
                                    {"V4", 4},
                                    {"V8", 8},
                                    {"u2", 2},
                                    {"u4", 4},
                                    {"u8", 8},
                                    {"void8", 1},
                                    {"void16", 2}}) {
    if (plain == descr) return size;
  }
  return 0;
}

std::string why_not(const PyValue& descr) {
  if (!descr.is(PyValue::Kind::kString)) return "a structured dtype; one plain number an element is needed";
  const std::string& text = descr.text;
  if (text.find('O') != std::string::npos) return "holds Python objects, which are never unpickled";
  return "the dtype " + quote(text) + " is none that fusediff has";
}

Status take_shape(const PyValue& shape, CapturedTensor& tensor) {
  const auto wrong = [](const std::string& what) { return user_error("no .npy header: the shape " + what); };
  if (shape.is(PyValue::Kind::kInteger)) return wrong("is no tuple");
  if (!shape.is(PyValue::Kind::kSequence)) return wrong("is no tuple");
  if (shape.items.size() > kMaxRank) return wrong("has more than " + std::to_string(kMaxRank) + " sizes");
  std::int64_t product = 1;
  for (const PyValue& size : shape.items) {
    if (!size.is(PyValue::Kind::kInteger) || size.integer < 0) return wrong("holds what is no size");
    tensor.shape.push_back(size.integer);
    if (__builtin_mul_overflow(product, std::max<std::int64_t>(size.integer, 1), &product) || product > kMaxElements) {
      tensor.problem = "has more than 2^31 elements";
      product = 1;
    }
  }
  return {};
}

}  // namespace

ElementType element_type(std::string_view descr) {
  ElementType type;
  type.text = std::string(descr);
  std::string_view plain = descr;
  if (!plain.empty() && std::string_view("<>=|").find(plain.front()) != std::string_view::npos) {
    type.swapped = plain.front() == '>';
    plain.remove_prefix(1);
  }
  for (const Known& known : kKnown) {
    if (plain == known.descr) {
      type.dtype = known.dtype;
      type.size = size_of(known.dtype);
    }
  }
  if (!type.dtype) {
    type.size = raw_width(plain);
    type.raw = type.size != 0;
  }
  if (type.size == 1) type.swapped = false;
  return type;
}

Result<CapturedTensor> read_npy_header(const ExactRead& read) {
  std::array<unsigned char, 12> start{};
  const auto bytes = [&](std::size_t from, std::size_t count) {
    return read(reinterpret_cast<char*>(start.data()) + from, count);
  };
  if (Status got = bytes(0, 8); !got.ok()) return got.error();
  if (std::string_view(reinterpret_cast<char*>(start.data()), 6) != kNpyMagic) {
    return user_error("no .npy data: it does not begin with \\x93NUMPY");
  }
  const int major = start[6];
  if (major < 1 || major > 3) return user_error("a .npy of version " + std::to_string(major) + "; 1 to 3 are read");
  const std::size_t width = major == 1 ? 2 : 4;
  if (Status got = bytes(8, width); !got.ok()) return got.error();
  std::size_t length = 0;
  for (std::size_t i = width; i-- > 0;) length = length << 8 | start[8 + i];
  if (length > kMaxHeader) return user_error("a .npy header of " + std::to_string(length) + " bytes; at most 65536");
  std::string text(length, '\0');
  if (Status got = read(text.data(), length); !got.ok()) return got.error();
  const Result<PyValue> header = parse_py_literal(text);
  if (!header.ok()) return user_error("no .npy header: " + header.error().what);
  const PyValue* descr = header->find("descr");
  const PyValue* order = header->find("fortran_order");
  const PyValue* shape = header->find("shape");
  if (descr == nullptr || order == nullptr || !order->is(PyValue::Kind::kBool) || shape == nullptr) {
    return user_error("no .npy header: descr, fortran_order and shape are needed");
  }
  CapturedTensor tensor;
  tensor.fortran = order->truth;
  if (Status took = take_shape(*shape, tensor); !took.ok()) return took.error();
  if (descr->is(PyValue::Kind::kString)) tensor.type = element_type(descr->text);
  if (tensor.type.size == 0) tensor.problem = why_not(*descr);
  return tensor;
}

}  // namespace fusediff
