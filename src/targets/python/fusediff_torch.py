"""Tensors as torch tensors on the shared memory, copied only where the file names a device that is not the CPU."""
import torch
from fusediff_errors import Misused

NAMES = {1: "float64", 2: "float32", 3: "float16", 4: "bfloat16", 5: "float8_e4m3fn", 6: "float8_e5m2", 16: "int64",
         17: "int32", 18: "int16", 19: "int8", 20: "uint8", 21: "bool"}
DTYPES = {number: getattr(torch, name) for number, name in NAMES.items() if hasattr(torch, name)}
BYTES = {number: torch.empty(0, dtype=dtype).element_size() for number, dtype in DTYPES.items()}
# How a kernel says that it does not exist for a dtype.
UNSUPPORTED = "not implemented for '"


class View:
    """A tensor of a call: where its bytes lie, and how."""

    def __init__(self, tensor, whole):
        self.shape, self.stride, self.size = tensor["shape"], tensor["stride"], BYTES[tensor["dtype"]]
        self.is_empty = 0 in self.shape
        if self.is_empty:
            self.on_cpu = torch.empty(self.shape, dtype=DTYPES[tensor["dtype"]])
        else:
            self.at = tensor["at"]
            self.on_cpu = whole.as_strided(self.shape, self.stride, self.at // self.size)

    def count(self):
        """Bytes from its first element to its last."""
        return self.size * (1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride)))

    def laid_over(self, copy):
        return copy[:self.count()].view(self.on_cpu.dtype).as_strided(self.shape, self.stride)


class Arrays:
    def __init__(self, region, device):
        self.memory = torch.frombuffer(region, dtype=torch.uint8)
        self.whole = {number: self.memory.view(dtype) for number, dtype in DTYPES.items()}
        self.device = None if device in (None, "cpu") else torch.device(device)
        if self.device is not None:
            torch.empty(1, device=self.device)

    def start_thread(self):
        pass

    def view(self, tensor):
        if tensor["dtype"] not in DTYPES:
            raise NotImplementedError("torch %s has no %s" % (torch.__version__, NAMES[tensor["dtype"]]))
        return View(tensor, self.whole[tensor["dtype"]]) if "at" in tensor or 0 in tensor["shape"] else None

    def lend(self, inputs, outputs):
        """Fresh tensors, so that what belongs to the tensor itself, such as requires_grad, does not stay for the next
        call; and what to do when the function has returned."""
        if self.device is not None:
            return self.lend_copies(inputs, outputs)
        return ({name: None if view is None else view.on_cpu.detach() for name, view in inputs.items()},
                {name: None if view is None else view.on_cpu.detach() for name, view in outputs.items()}, None)

    def lend_copies(self, inputs, outputs):
        """Byte for byte, gaps included, so that strides and an output that lies on an input are there what they are here.
        Everything is brought back: a changed input shows."""
        views = [v for v in [*inputs.values(), *outputs.values()] if v is not None and not v.is_empty]
        count = {}
        for view in views:
            count[view.at] = max(count.get(view.at, 0), view.count())
        here = {at: self.memory[at:at + bytes] for at, bytes in count.items()}
        copies = {at: torch.empty_like(memory, device=self.device).copy_(memory) for at, memory in here.items()}

        def lent(view):
            if view is None:
                return None
            return view.on_cpu.to(self.device) if view.is_empty else view.laid_over(copies[view.at])

        def give_back():
            for at, copy in copies.items():
                here[at].copy_(copy)

        return ({name: lent(view) for name, view in inputs.items()},
                {name: lent(view) for name, view in outputs.items()}, give_back)

    def kept(self, value):
        return value.clone() if isinstance(value, torch.Tensor) else value

    def store(self, what, into, value, shape, dtype):
        try:
            value = torch.as_tensor(value)
        except Exception as error:
            raise Misused("%s is a %s, which torch takes for no tensor: %s" % (what, type(value).__name__, error))
        if tuple(value.shape) != shape or value.dtype != DTYPES[dtype]:
            raise Misused("%s has shape %s, %s; the schema says %s, %s" % (
                what, list(value.shape), value.dtype, list(shape), DTYPES[dtype]))
        if into is not None and not into.is_empty:
            into.on_cpu.copy_(value.detach())

    def is_unsupported(self, error):
        return isinstance(error, RuntimeError) and UNSUPPORTED in str(error)
