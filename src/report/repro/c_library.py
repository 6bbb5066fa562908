# ---- the C header of the target (fusediff_target.h, version 1) -----------------------------------------------------


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("stride", ctypes.POINTER(ctypes.c_int64)), ("data", pointer), ("rank", ctypes.c_int32),
                ("dtype", ctypes.c_int32)]


class Attr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_int32), ("i", ctypes.c_int64), ("f", ctypes.c_double),
                ("s", ctypes.c_char_p)]


class CCall(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_uint32), ("op", ctypes.c_char_p), ("path", ctypes.c_char_p),
                ("attrs", ctypes.POINTER(Attr)), ("attr_count", c_size), ("inputs", ctypes.POINTER(Tensor)),
                ("input_count", c_size), ("outputs", ctypes.POINTER(Tensor)), ("output_count", c_size),
                ("workspace", pointer), ("workspace_size", c_size)]


def function(result, *arguments):
    return ctypes.CFUNCTYPE(result, *arguments)


class Table(ctypes.Structure):
    _fields_ = [("abi_version", ctypes.c_uint32), ("struct_size", ctypes.c_uint32), ("name", ctypes.c_char_p),
                ("version", ctypes.c_char_p), ("schema", function(ctypes.c_char_p)),
                ("open", function(ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(pointer))),
                ("close", function(None, pointer)),
                ("workspace_bytes", function(ctypes.c_int, pointer, ctypes.POINTER(CCall), ctypes.POINTER(c_size))),
                ("run", function(ctypes.c_int, pointer, ctypes.POINTER(CCall))),
                ("last_error", function(ctypes.c_char_p)),
                ("alloc", function(pointer, pointer, c_size)), ("release", function(None, pointer, pointer)),
                ("write", function(ctypes.c_int, pointer, pointer, pointer, c_size)),
                ("read", function(ctypes.c_int, pointer, pointer, pointer, c_size))]


class Library:
    """A target's shared library, loaded."""

    def __init__(self, path, options):
        self.path, self.options = path, options.encode()
        try:
            entry = ctypes.CDLL(os.path.abspath(path)).fusediff_target
        except (OSError, AttributeError) as error:
            raise Unusable("cannot use %s as a target: %s" % (path, error))
        entry.restype = ctypes.POINTER(Table)
        self.table = entry().contents if entry() else None
        if not self.table or self.table.abi_version != 1:
            raise Unusable("%s offers no target of version 1 of fusediff_target.h" % path)
        self.owns_memory, self.asks_workspace = bool(self.table.alloc), bool(self.table.workspace_bytes)

    def open(self):
        """A fresh context: a device, a stream, a handle."""
        context = pointer()
        status = self.table.open(self.options, ctypes.byref(context))
        if status != OK:
            raise Unusable("%s will not open: %s" % (self.path, self.why(status)))
        return context

    def close(self, context):
        self.table.close(context)

    def schema(self):
        return json.loads(self.table.schema())

    def workspace_bytes(self, context, call):
        """The status of the first stage of the call, and what it asks for."""
        asked = c_size(0)
        return self.table.workspace_bytes(context, call, asked), asked.value

    def run(self, context, call):
        return self.table.run(context, call)

    def prepared(self, plan, memory):
        """The call as run() takes it, on {name of a tensor: Memory}."""
        def tensors(plans):
            made = (Tensor * len(plans))()
            for c, t in zip(made, plans):
                rank, at = len(t["shape"]), memory.get(t["name"])
                c.name, c.rank, c.dtype = t["name"].encode(), rank, DTYPES[t["dtype"]][0]
                c.shape, c.stride = (ctypes.c_int64 * rank)(*t["shape"]), (ctypes.c_int64 * rank)(*t["stride"])
                c.data = at.address if at else None
            return made

        attrs = (Attr * len(plan["attrs"]))()
        for c, (name, value) in zip(attrs, plan["attrs"].items()):
            c.name = name.encode()
            if isinstance(value, str):
                c.kind, c.s = 3, value.encode()
            elif isinstance(value, float):
                c.kind, c.f = 2, value
            else:
                c.kind, c.i = 1, value
        inputs, outputs = tensors(plan["inputs"]), tensors(plan["outputs"])
        return CCall(ctypes.sizeof(CCall), plan["op"].encode(), plan["path"].encode(), attrs, len(attrs), inputs,
                     len(inputs), outputs, len(outputs), None, 0)

    def why(self, status):
        said = self.table.last_error() if self.table.last_error else None
        return "%s%s" % (STATUS.get(status, status), ": " + said.decode(errors="replace") if said else "")


