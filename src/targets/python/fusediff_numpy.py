"""Tensors as numpy arrays on the shared memory. bf16 and fp8 need ml_dtypes; without it they are not offered."""
import numpy as np
from fusediff_errors import Misused

DTYPES = {1: np.float64, 2: np.float32, 3: np.float16, 16: np.int64, 17: np.int32, 18: np.int16, 19: np.int8,
          20: np.uint8, 21: np.bool_}
NARROW = {4: "bfloat16", 5: "float8_e4m3fn", 6: "float8_e5m2"}
try:
    import ml_dtypes
    DTYPES.update({number: getattr(ml_dtypes, name) for number, name in NARROW.items()})
except ImportError:
    pass
DTYPES = {number: np.dtype(kind) for number, kind in DTYPES.items()}


class Arrays:
    def __init__(self, region, device):
        self.region = region

    def start_thread(self):
        # What a division by zero or an overflow gives is compared; a line of warning for each helps nobody.
        np.seterr(all="ignore")

    def view(self, tensor):
        dtype = DTYPES.get(tensor["dtype"])
        if dtype is None:
            raise NotImplementedError("numpy has no %s here: install ml_dtypes, or say arrays = \"torch\"" %
                                      NARROW.get(tensor["dtype"], tensor["dtype"]))
        shape = tensor["shape"]
        if 0 in shape:
            return np.empty(shape, dtype)
        if "at" not in tensor:
            return None
        return np.ndarray(shape, dtype, self.region, tensor["at"], [s * dtype.itemsize for s in tensor["stride"]])

    def lend(self, inputs, outputs):
        """Fresh arrays: a function may change what belongs to the array itself, and not for the next call."""
        return ({name: None if array is None else array.view() for name, array in inputs.items()},
                {name: None if array is None else array.view() for name, array in outputs.items()}, None)

    def kept(self, value):
        return np.array(value)

    def store(self, what, into, value, shape, dtype):
        try:
            value = np.asarray(value)
        except Exception as error:
            raise Misused("%s is a %s, which numpy takes for no array: %s" % (what, type(value).__name__, error))
        if value.shape != shape or value.dtype != DTYPES[dtype]:
            raise Misused("%s has shape %s, %s; the schema says %s, %s" % (
                what, list(value.shape), value.dtype, list(shape), DTYPES[dtype]))
        if into is not None:
            into[...] = value

    def is_unsupported(self, error):
        return False
