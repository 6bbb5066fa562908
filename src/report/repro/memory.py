# ---- memory --------------------------------------------------------------------------------------------------------
# Every tensor has whole pages of its own, with 64 KiB on either side that may not be touched. In its pages it leans on
# one end or lies in the middle; all other bytes there hold the guard fill. The first byte has the same address modulo
# the page size as when this was found.

c_size, pointer = ctypes.c_size_t, ctypes.c_void_p
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
        if library.owns_memory:  # the target's own memory: no pages to close, so guard bytes on both sides
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


