#!/usr/bin/env python3
"""What a function of a Python target is given and what becomes of what it returns, by messages to host.py.

    host_test.py numpy|torch
"""
import builtins
import importlib.util
import json
import os
import sys
import tempfile

import fusediff_file
from driven_host import DrivenHost

SKIPPED = 77

FILE = """
import threading
both = threading.Barrier(2)
schema = [{"name": "any", "attrs": [{"name": "eps", "float": [0, 1]}, {"name": "renorm", "bool": True}]},
          {"name": "two"}]
for op in schema:
    op["inputs"] = [{"name": "x"}, {"name": "bias", "optional": True}]
    op["outputs"] = [{"name": "y"}, {"name": "z", "optional": True}]
schema[0]["outputs"].pop()

def open_context(options):
    if options == "wrong":
        raise ValueError("unknown option")
    return {"options": options, "calls": 0}

def close_context(context):
    print("closed after", context["calls"])

def any_fused(x, context, eps, renorm, bias=None):
    context["calls"] += 1
    if not isinstance(renorm, bool):
        raise TypeError("renorm is no bool")
    return x + (eps if renorm else 0) * (0 if bias is None else bias)

def any_unfused(x, out):
    out["y"][...] = x + x

def any_reference(**given):
    raise RuntimeError(" ".join(sorted(given)))

def any_exits(x):
    raise SystemExit(3)

def any_odd(x):
    raise NotImplementedError("no odd ones")

def any_meets(x):
    both.wait(60)
    return x

def any_marks(x, out):
    MARKS

def two_fused(x, out):
    out["y"][...] = x
    if out["z"] is not None:
        out["z"][...] = 7

def two_unfused(x):
    return x + 1, x

def two_reference(x):
    return {"z": x}
for op in schema:
    op["paths"] = [n.split("_")[1] for n in list(globals()) if n.startswith(op["name"] + "_")]
"""
MARKS = {"numpy": "x.shape = (-1,); x.flags.writeable = False; out['y'][...] = x.reshape(out['y'].shape)",
         "torch": "x.unsqueeze_(0).requires_grad_(x.is_floating_point()); out['y'].copy_(x.detach()[0])"}


def must(holds, what):
    if not holds:
        sys.exit("host_test.py: %s" % (what,))


class Calls:
    def __init__(self, host):
        self.host, self.context = host, host.ask(do="open", options="fast")["number"]

    def run(self, path, inputs, outputs, op="any", **attrs):
        return self.host.ask(do="run", context=self.context, op=op, path=path, attrs={"eps": {"f64": 0}, "renorm": 0, **attrs},
                             inputs=inputs, outputs=outputs, workspace_bytes=0)

    def ok(self, *words, **more):
        answer = self.run(*words, **more)
        must(answer == {}, answer)


def arguments(host, calls):
    x = host.tensor("x", "f32", [2, 2], values=[1, 2, 3, 4])
    bias = host.tensor("bias", "f32", [2], values=[10, 20])
    y = host.tensor("y", "f32", [2, 2])
    absent = {"name": "bias", "dtype": 2, "shape": [2], "stride": [1]}
    half = {"f64": 0x3FE0000000000000}
    calls.ok("fused", [x, bias], [y], eps=half, renorm=1)
    must(host.values(y) == [6, 12, 8, 14], host.values(y))
    calls.ok("fused", [x, absent], [y], eps=half, renorm=1)
    must(host.values(y) == [1, 2, 3, 4], host.values(y))
    calls.ok("unfused", [x, bias], [y])
    must(host.values(y) == [2, 4, 6, 8] and host.values(x) == [1, 2, 3, 4], host.values(y))
    answer = calls.run("reference", [x, bias], [y])
    must(answer["status"] == 3 and answer["error"].startswith("RuntimeError: bias eps renorm x (target.py:"), answer)
    answer = calls.run("exits", [x, bias], [y])
    must(answer["status"] == 3 and answer["error"].startswith("SystemExit: 3"), answer)
    answer = calls.run("odd", [x, bias], [y])
    must(answer["status"] == 1 and "no odd ones" in answer["error"], answer)
    must(calls.run("none", [x, bias], [y])["status"] == 1, "a path that is not there")
    # What a function does to the array itself is gone by the next call, although that is made by the same message.
    for _ in range(3):
        calls.ok("marks", [x, bias], [y])
        must(host.values(y) == [1, 2, 3, 4], host.values(y))


def layouts(host, calls):
    y = host.tensor("y", "f32", [2, 3])
    for stride, values, wanted in (([0, 1], [1, 2, 3], [1, 2, 3] * 2), ([0, 0], [5], [5] * 6), ([1, 2], range(1, 7), [1, 3, 5, 2, 4, 6])):
        x = host.tensor("x", "f32", [2, 3], stride, list(values))
        calls.ok("fused", [x], [y])
        must(host.values(y) == wanted, (stride, host.values(y)))
    # Gaps of a strided output are left alone.
    x = host.tensor("x", "f32", [2, 2], values=[1, 2, 3, 4])
    for path in ("fused", "unfused"):
        gaps = host.tensor("y", "f32", [2, 2], [4, 1], [9] * 6)
        calls.ok(path, [x], [gaps])
        must(host.values(gaps)[2:4] == [9, 9] and 9 not in host.values(gaps)[:2], host.values(gaps))
    number = host.tensor("x", "f32", [], values=[3])
    scalar = host.tensor("y", "f32", [])
    calls.ok("unfused", [number], [scalar])
    must(host.values(scalar) == [6], host.values(scalar))
    for path in ("fused", "unfused"):
        calls.ok(path, [host.tensor("x", "f32", [0, 5])], [host.tensor("y", "f32", [0, 5])])


def outputs(host, calls):
    x = host.tensor("x", "f32", [3], values=[1, 2, 3])
    y, z = host.tensor("y", "f32", [3]), host.tensor("z", "f32", [3])
    unwanted = {"name": "z", "dtype": 2, "shape": [3], "stride": [1]}
    calls.ok("fused", [x], [y, z], op="two")
    must(host.values(y) == [1, 2, 3] and host.values(z) == [7, 7, 7], (host.values(y), host.values(z)))
    for path in ("fused", "unfused"):
        calls.ok(path, [x], [y, unwanted], op="two")
    calls.ok("reference", [x], [host.tensor("y", "f32", [3]), z], op="two")
    must(host.values(z) == [1, 2, 3], host.values(z))
    # y lies on x, and z is returned as a view of x.
    on_x = {**y, "at": x["at"]}
    calls.ok("unfused", [x], [on_x, z], op="two")
    must(host.values(on_x) == [2, 3, 4] and host.values(z) == [1, 2, 3], (host.values(on_x), host.values(z)))
    answer = calls.run("fused", [x], [host.tensor("y", "f32", [4])])
    must(answer["status"] == 3 and "has shape [3]" in answer["error"] and "the schema says [4]" in answer["error"], answer)


def dtypes(host, calls, kind):
    for dtype in ("f64", "f32", "f16", "i64", "i32", "i16", "i8", "u8", "bool"):
        x = host.tensor("x", dtype, [2], values=[1, 0])
        y = host.tensor("y", dtype, [2])
        calls.ok("marks", [x], [y])
        must(host.values(y) == [1, 0], (dtype, host.values(y)))
    for dtype, one in (("bf16", 0x3F80), ("f8e4m3fn", 0x38)):
        x, y = host.tensor("x", dtype, [2], values=[one, 0]), host.tensor("y", dtype, [2])
        answer = calls.run("marks", [x], [y])
        offered = dtype == "bf16" if kind == "torch" else False
        if offered or answer == {}:
            must(answer == {} and host.values(y) == [one, 0], (dtype, answer, host.values(y)))
        else:
            must(answer["status"] == 1 and "has no " in answer["error"], answer)


def contexts(host, calls):
    answer = host.ask(do="open", options="wrong")
    must(answer["status"] == 2 and answer["error"].startswith("ValueError: unknown option (target.py:"), answer)
    second = host.ask(do="open", options="")["number"]
    must(second != calls.context, "two contexts of one number")
    must(host.ask(do="close", context=second) == {}, "close")
    must(host.ask(do="open", options="")["number"] == second, "the lowest free number is given")
    # Calls on two channels run at once.
    x, y = host.tensor("x", "f32", [1], values=[1]), host.tensor("y", "f32", [1])
    first, other = host.channel, host.new_channel()
    text = json.dumps({"do": "run", "context": calls.context, "op": "any", "path": "meets", "attrs": {}, "inputs": [x],
                       "outputs": [y], "workspace_bytes": 0}).encode()
    first.send(text)
    other.send(text)
    must(first.recv(999) == other.recv(999) == b"{}", "two calls do not meet")


def on_a_device(host, calls):
    """As on a device: copies there and back."""
    x = host.tensor("x", "f32", [2, 2], [0, 1], values=[1, 2])
    gaps = host.tensor("y", "f32", [2, 2], [4, 1], [9] * 6)
    calls.ok("unfused", [x], [gaps])
    must(host.values(gaps) == [2, 4, 9, 9, 2, 4] and host.values(x) == [1, 2], host.values(gaps))
    outputs(host, calls)
    x = host.tensor("x", "f32", [3], values=[1, 2, 3])
    on_x = host.tensor("y", "f32", [3], at=x["at"])
    calls.ok("unfused", [x], [on_x])
    must(host.values(on_x) == [2, 4, 6], host.values(on_x))


def without_an_end(folder):
    file, said = os.path.join(folder, "slow.py"), []
    with open(file, "w") as text:
        text.write("import time\nbegin = time.monotonic()\nwhile not said and time.monotonic() - begin < 60: time.sleep(0.01)\n")
    fusediff_file.LONGEST_LOAD = 0.1
    builtins.said = said
    fusediff_file.load(file, said.append)
    must(str(said[0]).startswith("line 3: not loaded after 0 s"), said)


def main():
    kind = sys.argv[1]
    if importlib.util.find_spec(kind) is None or importlib.util.find_spec("numpy") is None:
        print("host_test: skipped, %s has no %s" % (sys.executable, kind))
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="fusediff_python_") as folder:
        file = os.path.join(folder, "target.py")

        def started(more=""):
            with open(file, "w") as text:
                text.write(FILE.replace("MARKS", MARKS[kind]) + "arrays = %r\n%s\n" % (kind, more))
            host = DrivenHost(file)
            must("refused" not in host.greeting, host.greeting)
            return host, Calls(host)

        host, calls = started()
        arguments(host, calls)
        layouts(host, calls)
        outputs(host, calls)
        dtypes(host, calls, kind)
        contexts(host, calls)
        must(host.ask(do="close", context=calls.context) == {}, "close")
        must("closed after " in host.end(), "what close_context printed")
        if kind == "torch":
            host, calls = started("device = 'cpu:0'")
            arguments(host, calls)
            layouts(host, calls)
            on_a_device(host, calls)
            host.end()
        without_an_end(folder)
    print("host_test: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
