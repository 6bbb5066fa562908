"""Tensors as torch tensors on the shared memory, copied only where the file names a device that is not the CPU."""
import torch

NAMES = {1: "float64", 2: "float32", 3: "float16", 4: "bfloat16", 5: "float8_e4m3fn", 6: "float8_e5m2", 16: "int64",
         17: "int32", 18: "int16", 19: "int8", 20: "uint8", 21: "bool"}
DTYPES = {number: getattr(torch, name) for number, name in NAMES.items() if hasattr(torch, name)}
# How a kernel says that it does not exist for a dtype.
UNSUPPORTED = ("not implemented for", "is not supported", "not supported on")


class Arrays:
    scope = torch.no_grad

    def __init__(self, region, device):
        self.bytes = torch.frombuffer(region, dtype=torch.uint8)
        self.device = None if device in (None, "cpu") else torch.device(device)

    def view(self, tensor):
        if tensor["dtype"] not in DTYPES:
            raise NotImplementedError("torch %s has no %s" % (torch.__version__, NAMES[tensor["dtype"]]))
        dtype = DTYPES[tensor["dtype"]]
        if 0 in tensor["shape"]:
            return torch.empty(tensor["shape"], dtype=dtype, device=self.device)
        if "at" not in tensor:
            return None
        size = torch.empty(0, dtype=dtype).element_size()
        extent = 1 + sum((n - 1) * s for n, s in zip(tensor["shape"], tensor["stride"]))
        flat = self.bytes[tensor["at"]:tensor["at"] + extent * size].view(dtype)
        return flat.as_strided(tensor["shape"], tensor["stride"])

    def brought(self, tensors):
        """As the file's functions get them: on its device."""
        if self.device is None:
            return dict(tensors)
        return {name: None if tensor is None else tensor.to(self.device) for name, tensor in tensors.items()}

    def take_back(self, outputs, out):
        """What a function wrote into `out`, where that was a copy."""
        if self.device is not None:
            for name, tensor in outputs.items():
                if tensor is not None:
                    tensor.copy_(out[name])

    def store(self, path, name, into, value, shape, dtype):
        value = torch.as_tensor(value)
        if tuple(value.shape) != shape or value.dtype != DTYPES[dtype]:
            raise TypeError("%s returned %s with shape %s %s; the schema says %s %s" % (
                path, name, list(value.shape), value.dtype, list(shape), DTYPES[dtype]))
        if into is not None and into.numel():
            into.copy_(value.detach())

    def is_unsupported(self, error):
        return isinstance(error, RuntimeError) and any(words in str(error) for words in UNSUPPORTED)
