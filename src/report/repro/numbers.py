# ---- numbers -------------------------------------------------------------------------------------------------------
# Every element type: its number in fusediff_target.h, and how NumPy holds its raw bits. Tensors are raw bits
# throughout; values() gives what they mean.

DTYPES = {"f64": (1, "u8"), "f32": (2, "u4"), "f16": (3, "u2"), "bf16": (4, "u2"), "f8e4m3fn": (5, "u1"),
          "f8e5m2": (6, "u1"), "i64": (16, "i8"), "i32": (17, "i4"), "i16": (18, "i2"), "i8": (19, "i1"),
          "u8": (20, "u1"), "bool": (21, "u1")}


def is_float(dtype):
    return DTYPES[dtype][0] < 16


def raw_type(dtype):
    return np.dtype("<" + DTYPES[dtype][1])


def values(dtype, bits):
    """Floats as float64, exactly; integers as they are."""
    bits = np.ascontiguousarray(bits).reshape(-1)
    if dtype == "f64":
        return bits.view("f8")
    if dtype == "f32":
        return bits.view("f4").astype("f8")
    if dtype == "f16":
        return bits.view("f2").astype("f8")
    if dtype == "bf16":  # the upper half of an f32
        return (bits.astype("u4") << 16).view("f4").astype("f8")
    if dtype == "f8e5m2":  # the upper half of an f16
        return (bits.astype("u2") << 8).view("f2").astype("f8")
    if dtype == "f8e4m3fn":  # no infinities; NaN has all bits set
        wide = bits.astype("i8")
        exponent, fraction = (wide >> 3) & 15, wide & 7
        size = np.where(exponent == 0, fraction * 2.0**-9, (8 + fraction) * 2.0 ** (exponent - 10.0))
        size = np.where(wide & 127 == 127, np.nan, size)
        return np.where(wide & 128, -size, size)
    return bits


def ulps(dtype, a, b):
    """How many representable values two elements are apart. Both zeros are one value, and so are any two NaNs."""
    if not is_float(dtype):
        a, b = a.astype("i8"), b.astype("i8")
        return np.where(a > b, a.view("u8") - b.view("u8"), b.view("u8") - a.view("u8"))
    sign = 1 << (8 * raw_type(dtype).itemsize - 1)

    def position(bits):  # on the line of all values, the zeros at `sign`
        bits = bits.astype("u8")
        size = bits & np.uint64(sign - 1)
        return np.where(bits & np.uint64(sign), np.uint64(sign) - size, np.uint64(sign) + size)

    at, to = position(a), position(b)
    nan_a, nan_b = np.isnan(values(dtype, a)), np.isnan(values(dtype, b))
    apart = np.where(at > to, at - to, to - at)
    return np.where(nan_a & nan_b, np.uint64(0), np.where(nan_a | nan_b, np.uint64(2**64 - 1), apart))


def other_bits(dtype, a, b):
    """Which elements differ in their bits, any NaN being like any other (unless the finding is about NaN bits)."""
    if is_float(dtype) and FINDING["class"] != "nan_bits":
        return (a != b) & ~(np.isnan(values(dtype, a)) & np.isnan(values(dtype, b)))
    return a != b


def show(dtype, bits):
    """An element as decimal and as bits."""
    raw = np.array([bits]).astype(raw_type(dtype))
    value, size = values(dtype, raw)[0], raw_type(dtype).itemsize
    if not is_float(dtype):
        text = str(value)
    elif dtype != "f64" and (value == 0 or 1e-3 <= abs(value) < 1e6):
        text = "%.10f" % value
    else:
        text = "%.*g" % (17 if dtype == "f64" else 9, value)
    return "%s (0x%0*x)" % (text, 2 * size, int(raw.view("u%d" % size)[0]))


def ulp_words(distance):
    return "NaN against a number" if distance == 2**64 - 1 else "%d ULP" % distance


def unpack(name, tensors, file):
    """A recorded tensor, flat: from this file, or from the safetensors file beside it."""
    if name in tensors:
        dtype, _, text = tensors[name]
        return np.frombuffer(base64.b64decode(text), raw_type(dtype))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), file)
    try:
        with open(path, "rb") as f:  # 8 bytes: size of a JSON header; the header; the tensors
            size = int.from_bytes(f.read(8), "little")
            entry = json.loads(f.read(size))[name]
            begin, end = entry["data_offsets"]
            f.seek(8 + size + begin)
            return np.frombuffer(f.read(end - begin), raw_type(STORED_AS[entry["dtype"]]))
    except (OSError, ValueError, KeyError) as error:
        raise Unusable("%s: tensor %s: %s; it belongs beside this script" % (path, name, error))


STORED_AS = {"F64": "f64", "F32": "f32", "F16": "f16", "BF16": "bf16", "F8_E4M3": "f8e4m3fn", "F8_E5M2": "f8e5m2",
             "I64": "i64", "I32": "i32", "I16": "i16", "I8": "i8", "U8": "u8", "BOOL": "bool"}


class Unusable(Exception):
    """Why this script cannot tell: one line for the user."""


# How a call ends, by the numbers of fusediff_target.h.
OK, UNSUPPORTED, REJECTED, FAILED = range(4)
STATUS = {OK: "OK", UNSUPPORTED: "UNSUPPORTED", REJECTED: "REJECTED", FAILED: "FAILED"}


