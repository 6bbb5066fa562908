"""A host of a Python target, driven as fusediff drives it, for tests and measurements. Nothing of it goes along with fusediff."""
import fcntl
import json
import mmap
import os
import socket
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REGION = 1 << 30
FIRST = 8 << 20  # where tensors may lie
MOST = 128 << 10
DTYPES = {"f64": (1, "d"), "f32": (2, "f"), "f16": (3, "e"), "bf16": (4, "H"), "f8e4m3fn": (5, "B"), "i64": (16, "q"),
          "i32": (17, "i"), "i16": (18, "h"), "i8": (19, "b"), "u8": (20, "B"), "bool": (21, "?")}


def dense(shape):
    strides, step = [], 1
    for n in reversed(shape):
        strides.insert(0, step)
        step *= max(n, 1)
    return strides


class DrivenHost:
    def __init__(self, file, folder=HERE):
        memory = os.memfd_create("driven_host")
        os.ftruncate(memory, REGION)
        self.region = mmap.mmap(memory, REGION)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        high = [fcntl.fcntl(number, fcntl.F_DUPFD, 64) for number in (theirs.fileno(), memory)]

        def at_3_and_4():
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [sys.executable, os.path.join(folder, "host.py"), file, "--parent", str(os.getpid())], pass_fds=(3, 4),
            preexec_fn=at_3_and_4, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for number in [*high, memory]:
            os.close(number)
        theirs.close()
        self.greeting = json.loads(self.control.recv(MOST))
        self.next = FIRST
        if "refused" not in self.greeting:
            self.channel = self.new_channel()

    def new_channel(self):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self.control, [b'{"do":"channel"}'], [theirs.fileno()])
        theirs.close()
        return ours

    def ask(self, **message):
        return self.ask_text(json.dumps(message).encode())

    def ask_text(self, text):
        self.channel.send(text)
        return json.loads(self.channel.recv(MOST))

    def tensor(self, name, dtype, shape, stride=None, values=None, at=None):
        """As it stands in a message; its elements in the order of memory, zeros where none are given."""
        number, code = DTYPES[dtype]
        stride = dense(shape) if stride is None else stride
        made = {"name": name, "dtype": number, "shape": shape, "stride": stride}
        if 0 in shape:
            return made
        count = 1 + sum((n - 1) * s for n, s in zip(shape, stride))
        if at is None:
            at, self.next = self.next, self.next + (count * struct.calcsize(code) + 63) // 64 * 64
            struct.pack_into("<%d%s" % (count, code), self.region, at, *(values or [0] * count))
        return {**made, "at": at}

    def values(self, tensor):
        code = {number: code for number, code in DTYPES.values()}[tensor["dtype"]]
        count = 1 + sum((n - 1) * s for n, s in zip(tensor["shape"], tensor["stride"]))
        return list(struct.unpack_from("<%d%s" % (count, code), self.region, tensor["at"]))

    def end(self):
        """What it printed."""
        self.control.close()
        printed = self.process.communicate(timeout=60)[0]
        return printed
