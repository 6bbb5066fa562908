# ---- the C header of the target (fusediff_target.h, version 1) -----------------------------------------------------

OK, UNSUPPORTED, REJECTED, FAILED = range(4)
STATUS = {OK: "OK", UNSUPPORTED: "UNSUPPORTED", REJECTED: "REJECTED", FAILED: "FAILED"}
c_size = ctypes.c_size_t
pointer = ctypes.c_void_p


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
            raise Unusable("cannot use %s as a target library: %s" % (path, error))
        entry.restype = ctypes.POINTER(Table)
        self.table = entry().contents if entry() else None
        if not self.table or self.table.abi_version != 1:
            raise Unusable("%s offers no target of version 1 of fusediff_target.h" % path)

    def open(self):
        """A fresh context: a device, a stream, a handle."""
        context = pointer()
        status = self.table.open(self.options, ctypes.byref(context))
        if status != OK:
            raise Unusable("%s will not open: %s" % (self.path, self.why(status)))
        return context

    def why(self, status):
        said = self.table.last_error() if self.table.last_error else None
        return "%s%s" % (STATUS.get(status, status), ": " + said.decode(errors="replace") if said else "")


# ---- memory --------------------------------------------------------------------------------------------------------
# Every tensor has whole pages of its own, with 64 KiB on either side that may not be touched. In its pages it leans on
# one end or lies in the middle; all other bytes there hold the guard fill. The first byte has the same address modulo
# the page size as when this was found.

PAGE, REACH = 4096, 65536
NO_ACCESS, READ_ONLY, READ_WRITE = 0, mmap.PROT_READ, mmap.PROT_READ | mmap.PROT_WRITE
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype, libc.mmap.argtypes = pointer, [pointer, c_size, ctypes.c_int, ctypes.c_int, ctypes.c_int, c_size]
libc.mprotect.argtypes, libc.munmap.argtypes = [pointer, c_size, ctypes.c_int], [pointer, c_size]

# What memory holds before the call. Two of each, so that it shows what an output follows.
FILLS = {"output": (0x3F, 0xC0), "workspace": (0x40, 0xBF), "guard": (0x3E, 0xC1)}


def up(number, step):
    return (number + step - 1) // step * step


class Memory:
    """The bytes of one tensor, or the workspace, and what lies around them. guard: access to the pages around."""

    def __init__(self, library, context, size, align, place, offset, guard):
        lead = up(256, align)  # in the middle: room for guard bytes, and no more aligned than asked for
        if place == "middle" and lead % 64 == 0 and align % 64 != 0:
            lead += align
        before = {"end": 0, "start": offset, "middle": lead + offset}[place]
        total = up(before + size + (256 if place == "middle" else 0) + (align if align > PAGE else 0), PAGE)
        self.size, self.library, self.context, self.block = size, library, context, None
        self.region, self.region_size = None, total + 2 * REACH
        if library.table.alloc:  # the target's own memory: no pages to close, so guard bytes on both sides
            self.bytes = np.zeros(total + 3 * PAGE, np.uint8)
            self.block = library.table.alloc(context, len(self.bytes))
            base = self.block
            if not base:
                raise Unusable("the target has no memory: " + library.why(FAILED))
            window = up(base + PAGE, PAGE)
        else:
            self.region = libc.mmap(None, self.region_size, guard, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
            if self.region in (None, 2**64 - 1):
                raise Unusable("no memory for %d bytes" % self.region_size)
            base = window = self.region + REACH
            if libc.mprotect(base, total, READ_WRITE) != 0:
                raise Unusable("no memory for %d bytes" % total)
            self.bytes = np.frombuffer((ctypes.c_ubyte * total).from_address(base), np.uint8)
        if place == "end":
            self.address = (window + total - size) // align * align
        else:
            self.address = up(window, align) + before
        self.first = self.address - base

    def view(self, tensor, bytes=None):
        """Its elements, where shape and strides put them."""
        kind = raw_type(tensor["dtype"])
        strides = [s * kind.itemsize for s in tensor["stride"]]
        return np.ndarray(tensor["shape"], kind, self.bytes if bytes is None else bytes, self.first, strides)

    def send(self):
        if self.block:
            self.library.table.write(self.context, self.block, self.bytes.ctypes.data, len(self.bytes))

    def fetch(self):
        if self.block:
            self.library.table.read(self.context, self.bytes.ctypes.data, self.block, len(self.bytes))

    def free(self):
        if self.block:
            self.library.table.release(self.context, self.block)
        if self.region:
            self.bytes = None
            libc.munmap(self.region, self.region_size)
        self.block = self.region = None


def filled(dtype, byte):
    """An element all of whose bytes are that one."""
    kind = raw_type(dtype)
    return np.frombuffer(bytes([byte] * kind.itemsize), kind)[0]


def extent(tensor):
    """Bytes from the first element to behind the last."""
    if 0 in tensor["shape"]:
        return 0
    last = sum((n - 1) * s for n, s in zip(tensor["shape"], tensor["stride"]))
    return (last + 1) * raw_type(tensor["dtype"]).itemsize


for plan in CALLS["target"] + CALLS["against"]:  # what the calls above leave out
    for t in plan["inputs"] + plan["outputs"]:
        for key, value in (("align", raw_type(t["dtype"]).itemsize), ("place", "end"), ("offset", 0), ("present", True),
                           ("wanted", True), ("stored", t["name"])):
            t.setdefault(key, value)


# ---- one call ------------------------------------------------------------------------------------------------------


class Call:
    """A recorded call, ready to be made on one context any number of times. middle: tensors that are to lie away from
    the closed pages. After run(): status, error, outputs, and what was damaged."""

    def __init__(self, library, context, plan, middle=(), guard=NO_ACCESS):
        self.library, self.context, self.plan, self.guard, self.middle = library, context, plan, guard, middle
        self.memory, self.workspace, self.asked, self.right = {}, None, c_size(0), None
        for at, tensor in enumerate(plan["inputs"]):
            above = [o for o in plan["outputs"] if o["wanted"] and o.get("on") == tensor["name"]]  # lies on this input
            self.place(tensor, tensor["present"], above)
        for tensor in plan["outputs"]:
            if tensor["wanted"] and tensor.get("on") in self.memory:
                self.memory[tensor["name"]] = self.memory[tensor["on"]]
            else:
                self.place(tensor, tensor["wanted"], [])
        self.sent = {t["name"]: unpack(t["stored"], INPUTS, "inputs.safetensors").reshape(t["shape"])
                     for t in plan["inputs"] if t["present"]}
        self.build()

    def place(self, tensor, wanted, above):
        size = max([extent(t) for t in [tensor] + above])
        if not wanted or size == 0:
            return
        align = max([t["align"] for t in [tensor] + above])
        middle = tensor["name"] in self.middle or "middle" in [t["place"] for t in above]
        place = "middle" if middle else tensor["place"]
        offset = tensor["offset"] * raw_type(tensor["dtype"]).itemsize
        self.memory[tensor["name"]] = Memory(self.library, self.context, size, align, place, offset, self.guard)

    def build(self):
        def tensors(plans):
            made = (Tensor * len(plans))()
            for c, t in zip(made, plans):
                rank = len(t["shape"])
                memory = self.memory.get(t["name"])
                c.name, c.rank, c.dtype = t["name"].encode(), rank, DTYPES[t["dtype"]][0]
                c.shape, c.stride = (ctypes.c_int64 * rank)(*t["shape"]), (ctypes.c_int64 * rank)(*t["stride"])
                c.data = memory.address if memory else None
            return made

        attrs = (Attr * len(self.plan["attrs"]))()
        for c, (name, value) in zip(attrs, self.plan["attrs"].items()):
            c.name = name.encode()
            if isinstance(value, str):
                c.kind, c.s = 3, value.encode()
            elif isinstance(value, float):
                c.kind, c.f = 2, value
            else:
                c.kind, c.i = 1, value
        inputs, outputs = tensors(self.plan["inputs"]), tensors(self.plan["outputs"])
        self.c = CCall(ctypes.sizeof(CCall), self.plan["op"].encode(), self.plan["path"].encode(), attrs, len(attrs),
                       inputs, len(inputs), outputs, len(outputs), None, 0)

    def fill(self, second=()):
        """Memory as it is before a call. second: of which memory to use the second fill."""
        fill = {name: FILLS[name][name in second] for name in FILLS}
        self.guard_fill = fill["guard"]
        for memory in self.memory.values():
            memory.bytes.fill(fill["guard"])
        if self.workspace:
            self.workspace.bytes.fill(fill["guard"])
            self.workspace.bytes[self.workspace.first:self.workspace.first + self.workspace.size] = fill["workspace"]
        for t in self.plan["outputs"]:
            if t["name"] in self.memory and t.get("on") not in self.memory:
                self.memory[t["name"]].view(t)[...] = filled(t["dtype"], fill["output"])
        for t in self.plan["inputs"]:
            if t["name"] in self.memory:
                self.memory[t["name"]].view(t)[...] = self.sent[t["name"]]

    def all_memory(self):
        return list({id(m): m for m in list(self.memory.values()) + [self.workspace] if m}.values())

    def run(self, second=()):
        """Both stages of the call, as fusediff makes them."""
        table, self.status = self.library.table, OK
        if table.workspace_bytes:
            self.c.workspace, self.c.workspace_size = None, 0
            self.status = table.workspace_bytes(self.context, ctypes.byref(self.c), ctypes.byref(self.asked))
        needed = self.asked.value if self.status == OK else 0
        if self.workspace and self.workspace.size != needed:
            self.workspace = self.workspace.free()
        if needed and not self.workspace:
            place = "middle" if "workspace" in self.middle else "end"
            self.workspace = Memory(self.library, self.context, needed, 64, place, 0, self.guard)
        self.fill(second)
        for memory in self.all_memory():
            memory.send()
        if self.status == OK:
            self.c.workspace, self.c.workspace_size = (self.workspace.address if needed else None), needed
            self.status = table.run(self.context, ctypes.byref(self.c))
        self.error = self.library.why(self.status) if self.status != OK else ""
        for memory in self.all_memory():
            memory.fetch()
        return self

    def again(self):
        """The same call as fast as possible: without new fills where none are needed, so that calls of several threads
        follow each other closely."""
        if self.library.table.alloc or any("on" in t for t in self.plan["outputs"]):
            return self.run()
        table = self.library.table
        if table.workspace_bytes:
            table.workspace_bytes(self.context, self.c, self.asked)
        self.status = table.run(self.context, self.c)

    def gave_other_bytes(self, right):
        """Whether any output is other than `right`, {name: elements}; compared as bytes."""
        if self.right is None:
            self.right = []
            for t in self.plan["outputs"]:
                if t["name"] in self.memory:
                    memory = self.memory[t["name"]]
                    copy = memory.bytes.copy()
                    memory.view(t, copy)[...] = right[t["name"]].reshape(t["shape"])
                    span = slice(memory.first, memory.first + extent(t))
                    self.right.append((memory.bytes[span], copy[span].tobytes()))
        return any(now.tobytes() != then for now, then in self.right)

    def outputs(self):
        """Copies of the elements of every wanted output, flat raw bits."""
        found = {}
        for t in self.plan["outputs"]:
            if t["wanted"]:
                found[t["name"]] = np.zeros(0, raw_type(t["dtype"]))  # no elements, no memory
                if t["name"] in self.memory:
                    found[t["name"]] = self.memory[t["name"]].view(t).reshape(-1).copy()
        return found

    def must_succeed(self):
        if self.status == UNSUPPORTED:
            raise Unusable("%s does not offer %s, path %s, for this call: %s" % (
                self.library.path, self.plan["op"], self.plan["path"], self.error))
        if self.status != OK:
            raise Unusable("%s: %s, path %s, ended in %s: without its outputs there is nothing to compare" % (
                self.library.path, self.plan["op"], self.plan["path"], self.error))
        return self

    def free(self):
        self.right = None
        for memory in self.all_memory():
            memory.free()

    def close(self):
        self.free()
        self.library.table.close(self.context)


def dtype_of(plan, output):
    return next(t["dtype"] for t in plan["outputs"] + plan["inputs"] if t["name"] == output)


def run_alone(library, plan, second=(), pinned=None, **how):
    """The call on a fresh context with nothing else in flight."""
    cpus = os.sched_getaffinity(0)
    if plan["pinned"] if pinned is None else pinned:
        os.sched_setaffinity(0, {min(cpus)})
    try:
        call = Call(library, library.open(), plan, **how)
        return call.run(second)
    finally:
        os.sched_setaffinity(0, cpus)


def outputs_alone(library, plan, **how):
    call = run_alone(library, plan, **how).must_succeed()
    outputs = call.outputs()
    call.close()
    return outputs


