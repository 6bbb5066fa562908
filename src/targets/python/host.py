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
import sys
import threading

import fusediff_call
import fusediff_errors
import fusediff_file
from fusediff_errors import OURS, Refused

SOCKET, MEMORY = 3, 4
PARCEL = 4096  # where the schema is left
MOST_MESSAGE = 128 << 10
MOST_KNOWN = 256
# Threads take turns this often, in seconds, so that what goes wrong between two lines of Python does within a short call.
TURN = 20e-6
SYSTEM_PYTHON = "/usr/bin/python3"


def die_with_parent(parent):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(3)


def prints_at_once():
    """What is printed is in the file when the process dies in the next line, C's printf included."""
    sys.stdout.reconfigure(write_through=True, errors="backslashreplace")
    sys.stderr.reconfigure(errors="backslashreplace")
    libc = ctypes.CDLL(None)
    by_line = 1
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, by_line, ctypes.c_size_t(0))


def say(channel, **answer):
    channel.send(json.dumps(answer).encode())


class Faults:
    """The signal handlers and guard pages of fusediff-host; without the library beside this file there are none."""

    def __init__(self, region, size):
        self.begin = ctypes.addressof(ctypes.c_char.from_buffer(region))
        path = OURS + "host_faults.so"
        self.library = ctypes.CDLL(path) if os.path.exists(path) else None
        if self.library:
            self.library.fusediff_report_faults(ctypes.c_void_p(self.begin), ctypes.c_uint64(size))

    def serve_here(self):
        if self.library:
            self.library.fusediff_serve_here()

    def restore_float(self):
        """A function may have set the thread to flush denormals; the next call is not to know."""
        if self.library:
            self.library.fusediff_restore_float()

    def cover(self, message):
        """The call pauses where it first touches that byte's page, so that calls in flight overlap."""
        if self.library:
            self.library.fusediff_cover(ctypes.c_void_p(self.begin + message["cover"]))

    def lift(self):
        if self.library:
            self.library.fusediff_lift()

    def guard(self, message):
        if self.library:
            at = ctypes.c_void_p(self.begin + message["at"])
            self.library.fusediff_close_guards(at, ctypes.c_uint64(message["bytes"]))


class Target:
    """The user's file, loaded."""

    def __init__(self, path, region, refuse):
        self.path = path
        self.file = fusediff_file.load(path, refuse)
        schema = fusediff_file.schema_of(self.file)
        self.schema = fusediff_file.text_of_schema(schema)
        self.functions = fusediff_file.functions_of(self.file, schema)
        self.arrays = fusediff_file.arrays_of(self.file, region)
        self.bools = {op["name"]: [a["name"] for a in fusediff_file.listed(op, "attrs") if "bool" in a]
                      for op in schema["operators"]}
        self.contexts, self.lock = {}, threading.Lock()

    def call(self, message):
        function = self.functions.get((message["op"], message["path"]))
        if function is None:
            raise NotImplementedError("%s has no path %s" % (message["op"], message["path"]))
        return fusediff_call.Call(function, message, self.arrays, self.bools[message["op"]])

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


class Channel:
    """Answers the messages of one thread, one after another."""

    def __init__(self, target, faults, connection):
        self.target, self.faults, self.connection, self.known = target, faults, connection, {}

    def serve(self):
        self.faults.serve_here()
        self.target.arrays.start_thread()
        connection, known, contexts = self.connection, self.known, self.target.contexts
        restore_float = self.faults.restore_float
        while True:
            text = connection.recv(MOST_MESSAGE)
            if not text:
                return
            call = known.get(text)
            try:
                if call is not None:
                    call[0].run(contexts[call[1]])
                    connection.send(b"{}")
                else:
                    self.answer(text)
            except BaseException as error:  # exit() in a function too ends that call alone
                try:
                    self.complain(error)
                except BaseException:  # one that cannot be told, or nowhere to print it
                    say(connection, status=fusediff_errors.FAILED, error="%s, which cannot be told" % type(error).__name__)
            restore_float()

    def answer(self, text):
        message = json.loads(text)
        what = message["do"]
        if what == "run":
            if len(self.known) >= MOST_KNOWN:
                self.known.clear()
            self.run(text, message)
        elif what == "open":
            return say(self.connection, number=self.target.open(message["options"]))
        elif what == "close":
            self.target.close(message["context"])
        elif what == "guard":
            self.faults.guard(message)
        say(self.connection)

    def run(self, text, message):
        call = self.target.call(message)
        context = self.target.contexts[message["context"]]
        if "cover" not in message:
            self.known[text] = call, message["context"]
            return call.run(context)
        self.faults.cover(message)
        try:
            call.run(context)
        finally:
            self.faults.lift()

    def complain(self, error):
        status = fusediff_errors.status_of(error, self.target.arrays)
        if status == fusediff_errors.FAILED and not isinstance(error, fusediff_errors.Misused):
            fusediff_errors.print_trace(error)
        words = fusediff_errors.one_line(fusediff_errors.spelled(error))
        say(self.connection, status=status, error=words + fusediff_errors.place_of(error, self.target.path))


def channels(control):
    """The connections that come, until fusediff is gone."""
    while True:
        text, descriptors, _, _ = socket.recv_fds(control, 64, 1)
        if not text or not descriptors:
            return
        yield socket.socket(fileno=descriptors[0])


def go_on_where_numpy_is():
    """The python3 on PATH may have none where the system's own has: that one goes on, unless the user chose this one."""
    try:
        import numpy
    except ImportError:
        is_system = os.path.realpath(sys.executable) == os.path.realpath(SYSTEM_PYTHON)
        if "FUSEDIFF_PYTHON" not in os.environ and not is_system and os.path.exists(SYSTEM_PYTHON):
            os.execv(SYSTEM_PYTHON, [SYSTEM_PYTHON] + sys.argv)


def serve(path, control):
    def refuse(error):
        say(control, refused=fusediff_errors.one_line("%s: %s" % (path, error)))
        os._exit(2)

    region = mmap.mmap(MEMORY, 0)
    try:
        target = Target(path, region, refuse)
    except Refused as error:
        refuse(error)
    region[PARCEL:PARCEL + len(target.schema)] = target.schema
    # Behind the stack it lists what is not of the standard library: hundreds of names of torch, no word on the fault.
    sys.stdlib_module_names = sys.stdlib_module_names.union(sys.modules)
    faulthandler.enable(all_threads=False)
    faults = Faults(region, len(region))
    sys.setswitchinterval(TURN)
    say(control, name=fusediff_file.name_of(target.file), version=fusediff_file.version_of(target.file),
        schema_bytes=len(target.schema), asks_workspace=False, owns_memory=False)
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # from here on the socket tells, and what the file has forked is to go too
    for connection in channels(control):
        threading.Thread(target=Channel(target, faults, connection).serve, daemon=True).start()


def main():
    if len(sys.argv) != 4 or sys.argv[2] != "--parent":
        sys.exit("usage: host.py FILE.py --parent PID; started by fusediff")
    die_with_parent(int(sys.argv[3]))
    go_on_where_numpy_is()
    prints_at_once()
    sys.path.remove(os.path.dirname(OURS))  # a user's `import host` is his own
    serve(os.path.abspath(sys.argv[1]), socket.socket(fileno=SOCKET))
    sys.stdout.flush()
    try:
        os.killpg(os.getpid(), signal.SIGKILL)  # the group that fusediff gave it, with what the file has forked
    except ProcessLookupError:
        os._exit(0)  # started otherwise; threads may still be inside the user's functions


if __name__ == "__main__":
    main()
