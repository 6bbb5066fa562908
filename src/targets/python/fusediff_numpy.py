"""Tensors as numpy arrays on the shared memory. bf16 and fp8 need ml_dtypes; without it they are not offered."""
import numpy as np

DTYPES = {1: np.float64, 2: np.float32, 3: np.float16, 16: np.int64, 17: np.int32, 18: np.int16, 19: np.int8,
          20: np.uint8, 21: np.bool_}
NARROW = {4: "bfloat16", 5: "float8_e4m3fn", 6: "float8_e5m2"}
try:
    import ml_dtypes
    for number, name in NARROW.items():
        DTYPES[number] = getattr(ml_dtypes, name)
except ImportError:
    pass


class Arrays:
    def __init__(self, region):
        self.region = region
        # What a division by zero or an overflow gives is compared; a line of warning for each helps nobody.
        self.scope = lambda: np.errstate(all="ignore")

    def view(self, tensor):
        if tensor["dtype"] not in DTYPES:
            raise NotImplementedError("numpy has no %s here: install ml_dtypes, or say arrays = \"torch\"" %
                                      NARROW.get(tensor["dtype"], tensor["dtype"]))
        dtype = np.dtype(DTYPES[tensor["dtype"]])
        if 0 in tensor["shape"]:
            return np.empty(tensor["shape"], dtype)
        if "at" not in tensor:
            return None
        strides = [s * dtype.itemsize for s in tensor["stride"]]
        return np.ndarray(tensor["shape"], dtype, self.region, tensor["at"], strides)

    def brought(self, arrays):
        return dict(arrays)

    def take_back(self, outputs, out):
        pass

    def store(self, path, name, into, value, shape, dtype):
        value = np.asarray(value)
        if value.shape != shape or value.dtype != np.dtype(DTYPES[dtype]):
            raise TypeError("%s returned %s with shape %s %s; the schema says %s %s" % (
                path, name, list(value.shape), value.dtype, list(shape), np.dtype(DTYPES[dtype])))
        if into is not None and into.size:
            into[...] = value

    def is_unsupported(self, error):
        return False
