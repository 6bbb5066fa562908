#!/usr/bin/env python3
"""The process that a Python target runs in. host.py FILE.py --parent PID, started by fusediff, not by people.

Socket on descriptor 3, shared memory on 4; src/host/HOST.md says what goes over them. The file's functions get numpy
arrays, or torch tensors where it says so, that lie on the shared memory. What it may say: README.md beside this file.
"""
import ctypes
import faulthandler
import json
import mmap
import os
import signal
import socket
import struct
import sys
import threading

SOCKET, MEMORY = 3, 4
PARCEL, PARCEL_BYTES = 4096, 4 << 20  # where the schema is left
MOST_MESSAGE = 128 << 10
MOST_KNOWN = 64
OK, UNSUPPORTED, REJECTED, FAILED = range(4)


def die_with_parent(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(3)


def say(channel, **answer):
    channel.send(json.dumps(answer).encode("utf-8", "replace") if answer else b"{}")


class Faults:
    """The signal handlers and guard pages of fusediff-host; without the library beside this file there are none."""

    def __init__(self, region, size):
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(region))
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host_faults.so")
        self.library = ctypes.CDLL(path) if os.path.exists(path) else None
        if self.library:
            self.library.fusediff_report_faults(ctypes.c_void_p(self.begin), ctypes.c_uint64(size))

    def serve_here(self):
        if self.library:
            self.library.fusediff_serve_here()

    def guard(self, message):
        if self.library:
            at = ctypes.c_void_p(self.begin + message["at"])
            self.library.fusediff_close_guards(at, ctypes.c_uint64(message["bytes"]))


class Call:
    """One call, ready to be made any number of times: the function, its arguments, and where its outputs go."""

    def __init__(self, target, message):
        self.function, wanted, self.passes_out = target.function(message["op"], message["path"])
        attrs = {n: struct.unpack("<d", struct.pack("<Q", v["f64"]))[0] if isinstance(v, dict) else v
                 for n, v in message["attrs"].items()}
        for name in target.bools.get(message["op"], ()):
            attrs[name] = bool(attrs[name])
        inputs = {t["name"]: target.arrays.view(t) for t in message["inputs"]}
        self.outputs = {t["name"]: target.arrays.view(t) for t in message["outputs"]}
        self.shapes = {t["name"]: tuple(t["shape"]) for t in message["outputs"]}
        self.dtypes = {t["name"]: t["dtype"] for t in message["outputs"]}
        taken = [n for n in list(inputs) + list(attrs) if wanted is None or n in wanted]
        self.inputs = {n: inputs[n] for n in taken if n in inputs}
        self.attrs = {n: attrs[n] for n in taken if n in attrs}
        self.takes_context = wanted is not None and "context" in wanted
        self.arrays = target.arrays
        self.path = message["path"]

    def run(self, context):
        arrays = self.arrays
        with arrays.scope():
            arguments = {**arrays.brought(self.inputs), **self.attrs}
            if self.takes_context:
                arguments["context"] = context
            if self.passes_out:
                arguments["out"] = out = arrays.brought(self.outputs)
            result = self.function(**arguments)
            if self.passes_out:
                arrays.take_back(self.outputs, out)
            if result is not None or not self.passes_out:
                self.store(result)

    def store(self, result):
        names = list(self.outputs)
        if isinstance(result, dict):
            values = result
            for name in values:
                if name not in self.outputs:
                    raise Misused("%s returned %s, which is no output; outputs are %s" % (
                        self.path, name, ", ".join(names)))
        elif isinstance(result, (tuple, list)):
            if len(result) != len(names):
                raise Misused("%s returned %d values for %d outputs (%s); None stands for one that is not given" % (
                    self.path, len(result), len(names), ", ".join(names)))
            values = dict(zip(names, result))
        elif len(names) == 1:
            values = {names[0]: result}
        else:
            raise Misused("%s returned one value for %d outputs (%s); a tuple or a dict is right" % (
                self.path, len(names), ", ".join(names)))
        for name, value in values.items():
            if value is not None:
                self.arrays.store(self.path, name, self.outputs[name], value, self.shapes[name], self.dtypes[name])


class Misused(Exception):
    """The file breaks a rule of Python targets: its author's mistake, in one line."""


class Target:
    """The user's file, loaded."""

    def __init__(self, path, region):
        import fusediff_file
        self.file = fusediff_file.load(path)
        self.arrays = fusediff_file.arrays_of(self.file, region)
        self.schema = fusediff_file.schema_of(self.file)
        self.functions = fusediff_file.functions_of(self.file, self.schema)
        self.bools = {op["name"]: [a["name"] for a in op.get("attrs", []) if "bool" in a]
                      for op in self.schema["operators"]}
        self.contexts, self.lock = {}, threading.Lock()

    def function(self, op, path):
        if (op, path) not in self.functions:
            raise NotImplementedError("%s has no path %s" % (op, path))
        return self.functions[op, path]

    def open(self, options):
        maker = getattr(self.file, "open_context", None)
        if options and maker is None:
            raise ValueError("unknown option %r: the file has no function open_context(options)" % options)
        made = maker(options) if maker else None
        with self.lock:
            number = 1  # the lowest that is free, so that a call on a fresh context is known by its text
            while number in self.contexts:
                number += 1
            self.contexts[number] = made
        return number

    def close(self, number):
        with self.lock:
            made = self.contexts.pop(number, None)
        closer = getattr(self.file, "close_context", None)
        if closer is not None:
            closer(made)


def where(error, path):
    """The last line of the user's file that the error came through."""
    at, trace = "", error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == path:
            at = " (%s:%d in %s)" % (os.path.basename(path), trace.tb_lineno, trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return at


class Channel:
    """Answers the messages of one thread, one after another."""

    def __init__(self, target, faults, connection):
        self.target, self.faults, self.connection, self.known = target, faults, connection, {}

    def serve(self):
        self.faults.serve_here()
        connection = self.connection
        while True:
            text = connection.recv(MOST_MESSAGE)
            if not text:
                return
            call = self.known.get(text)
            try:
                if call is not None:
                    call[0].run(self.target.contexts[call[1]])
                    connection.send(b"{}")
                else:
                    self.answer(text)
            except Exception as error:
                self.complain(error)

    def answer(self, text):
        message = json.loads(text)
        what = message["do"]
        if what == "run":
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            call = Call(self.target, message)
            self.known[text] = call, message["context"]
            call.run(self.target.contexts[message["context"]])
        elif what == "open":
            return say(self.connection, number=self.target.open(message["options"]))
        elif what == "close":
            self.target.close(message["context"])
        elif what == "guard":
            self.faults.guard(message)
        say(self.connection)

    def complain(self, error):
        status, words = FAILED, "%s: %s" % (type(error).__name__, error)
        if isinstance(error, NotImplementedError) or self.target.arrays.is_unsupported(error):
            status = UNSUPPORTED
        elif isinstance(error, ValueError):
            status = REJECTED
        elif isinstance(error, Misused):
            words = str(error)
        else:
            sys.excepthook(type(error), error, error.__traceback__)
        path = self.target.file.__file__
        say(self.connection, status=status, error=" ".join(words.split())[:900] + where(error, path))


def channels():
    """The connections that come, until fusediff is gone."""
    control = socket.socket(fileno=SOCKET)
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not text or not descriptors:
            return
        yield socket.socket(fileno=descriptors[0])


def need_numpy():
    """The python3 on PATH may have none where the system's own has: that one goes on, unless the user chose this one."""
    try:
        import numpy
        return numpy
    except ImportError:
        system = "/usr/bin/python3"
        if "FUSEDIFF_PYTHON" not in os.environ and os.path.realpath(sys.executable) != os.path.realpath(system) \
                and os.path.exists(system):
            os.execv(system, [system] + sys.argv)
    return None


def main():
    if len(sys.argv) != 4 or sys.argv[2] != "--parent":
        sys.exit("usage: host.py FILE.py --parent PID; started by fusediff")
    die_with_parent(int(sys.argv[3]))
    control = socket.socket(fileno=os.dup(SOCKET))
    if need_numpy() is None:
        say(control, refused="%s: %s has no numpy: install it, or name an interpreter that has it in FUSEDIFF_PYTHON"
            % (sys.argv[1], sys.executable))
        return 2
    sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    region = mmap.mmap(MEMORY, 0)
    import fusediff_file
    try:
        target = Target(sys.argv[1], region)
        schema = json.dumps(target.schema).encode()
        if len(schema) > PARCEL_BYTES:
            raise fusediff_file.Refused("the schema has more than 4 MiB")
    except fusediff_file.Refused as error:
        say(control, refused=" ".join(("%s: %s" % (sys.argv[1], error)).split()))
        return 2
    region[PARCEL:PARCEL + len(schema)] = schema
    faulthandler.enable(all_threads=False)
    faults = Faults(region, len(region))
    say(control, name=fusediff_file.name_of(target.file), version=fusediff_file.version_of(target.file),
        schema_bytes=len(schema), asks_workspace=False, owns_memory=False)
    control.close()
    for connection in channels():
        threading.Thread(target=Channel(target, faults, connection).serve, daemon=True).start()
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads may still be inside the user's functions
