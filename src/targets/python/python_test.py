#!/usr/bin/env python3
"""Python targets as a user sees them: each kind of fault is found with the right words, its clean twin is clean, a file
that is no target costs one line.

    python_test.py --bin FOLDER files|faults|clean|deaths|torch|campaign
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SKIPPED = 77

RECORD = """
def record(name, dtype="f32"):
    return {"name": name, "dims": {"R": {"range": [0, 16]}, "C": {"range": [0, 40]}},
            "inputs": [{"name": "x", "shape": ["R", "C"], "dtype": dtype}],
            "outputs": [{"name": "y", "shape": ["R", "C"], "dtype": "=x", "stage": 1}],
            "rows": {"dim": "R", "inputs": ["x"], "outputs": "all"}}
"""

# name: (what stands before the function, its body, parts of what is shown)
FAULTS = {
    "adds_an_ulp": ("", "y = x * 2; y.ravel()[-1:].view(np.int32)[...] += 1; return y", ["in adds_an_ulp, output y"]),
    "forgets_the_tail": ("", "out['y'][:, :4] = x[:, :4] * 2", ["unwritten in forgets_the_tail, output y", "36/84 bytes"]),
    "changes_its_input": ("", "x *= 2; return x", ["input_changed in changes_its_input", "input x"]),
    "raises": ("", "raise RuntimeError('no kernel for\\n3 rows \\ud800')",
               ["undeclared_limit in raises", "RuntimeError: no kernel for 3 rows \\ud800 (target.py:", "in raises_fused)",
                "printed: Traceback (most recent call last): | File"]),
    "rejects": ("", "raise ValueError('C must be even')",
                ["undeclared_limit in rejects", "rejects a call that the schema allows: ValueError: C must be even"]),
    "quits": ("", "import sys; sys.exit('no device')", ["undeclared_limit in quits", "SystemExit: no device"]),
    "has_no_words": ("class Mute(Exception):\n    def __str__(self): return 1 / 0\n", "raise Mute()",
                     ["undeclared_limit in has_no_words", "Mute: (it has no text"]),
    "returns_a_slice": ("", "return (x * 2)[:, :4]",
                        ["has shape [3, 4], float32; the schema says [3, 7], float32"]),
    "returns_doubles": ("", "return x * np.float64(2) + np.zeros(1)", ["float64; the schema says [3, 7], float32"]),
    "returns_nothing": ("", "x * 2", ["returned None: an array for y is right"]),
    "returns_two": ("", "return x, x", ["returned 2 values for 1 outputs (y)"]),
    "returns_another": ("", "return {'z': x}", ["returned z, which is no output; these are y"]),
    "returns_ragged": ("", "return {'y': [[1, 2], [3]]}", ["undeclared_limit in returns_ragged"]),
    "takes_too_much": ("", "return twice(x, x)", ["TypeError: twice() takes 1 positional argument but 2 were given"]),
    "prints": ("import sys\n", "print('rows', len(x), end=''); return x * 3",
               ["damage in prints, output y", "fused printed: rows 3"]),
    "remembers": ("calls = []\n", "calls.append(1); return x * 2 + (len(calls) > 2)", ["in remembers, output y"]),
    "shares_scratch": ("import time\nscratch = np.zeros(2000, np.float32)\n",
                       "n = x.size; scratch[:n] = x.ravel() * 2; time.sleep(0); return scratch[:n].reshape(x.shape)",
                       ["in shares_scratch, output y"]),
}
DEATHS = {
    "leaves": ("import os\n", "os._exit(3)", ["crash in leaves: fused: the process ended in run(): exit code 3"]),
    "aborts": ("import os\n", "print('about to', end=' '); libc.printf(b'abort\\n'); os.abort()",
               ["crash in aborts: fused: SIGABRT in run()", "printed: about to abort | Fatal Python error: Aborted",
                "in aborts_fused"]),
    "reads_null": ("", "ctypes.c_float.from_address(0).value", ["crash in reads_null: fused: SIGSEGV", "near NULL"]),
    "writes_behind": ("", "y = out['y']; y[...] = x * 2; libc.memset(ctypes.c_void_p(y.ctypes.data + y.nbytes), 0, 4)",
                      ["overrun in writes_behind, output y: fused: wrote 1 byte behind y (guard page)"]),
    "reads_behind": ("", "ctypes.c_float.from_address(x.ctypes.data + x.nbytes + 4096).value; return x * 2",
                     ["overread in reads_behind, output x", "behind x (guard page)"]),
    "hangs": ("import time\n", "time.sleep(1000)", ["hang in hangs", "did not return within the time cap"]),
    "spins": ("", "re.match('(a+)+$', 'a' * 64 + 'b')", ["hang in spins"]),  # in C, without giving up the interpreter
}
HEAD = "import ctypes, re\nimport numpy as np\nlibc = ctypes.CDLL(None)\ndef twice(x): return x * 2\n" + RECORD

GOOD = RECORD + "schema = record('twice')\ndef fused(x): return x * 2\ndef unfused(x): return x + x\n"
# name: (text, what the one line says)
FILES = {
    "empty": ("", "there is no variable `schema`"),
    "syntax": ("x = 1\ndef fused(x:\n", "line 2: '(' was never closed"),
    "no_text": (b"x = '\xe9'\n", "line 1: (unicode error)"),
    "no_module": ("import nothing_of_this_name\n", "line 1: ModuleNotFoundError: No module named 'nothing_of_this_name'; the "
                  "interpreter is "),
    "fails": ("a = 1\n1 / 0\n", "line 2: ZeroDivisionError: division by zero"),
    "quits": ("import sys\nsys.exit('no device')\n", "line 2: SystemExit: no device"),
    "leaves": ("import os\nprint('bye', end='')\nos._exit(4)\n", "did not start: exit code 4; it printed: bye"),
    "aborts": ("import os\nos.abort()\n", "did not start: signal 6 (Aborted)"),
    "interrupts": ("raise KeyboardInterrupt\n", "line 1: KeyboardInterrupt"),
    "no_operator": ("schema = 3\n", "an operator is a dict with a `name`"),
    "a_set": ("schema = {'name': 'a', 'dims': {1}}\ndef fused(): pass\n", "{1} is no text, number, list or dict"),
    "not_a_number": ("schema = {'name': 'a', 'dims': float('nan')}\ndef fused(): pass\n", "not JSON compliant"),
    "inputs_are_a_dict": ("schema = {'name': 'a', 'dims': {}, 'inputs': {'x': 1}, 'outputs': []}\ndef fused(x): pass\n",
                          "/operators/0/inputs"),
    "no_function": (RECORD + "schema = record('twice')\n", "there is no function twice_fused(...) or fused(...)"),
    "one_of_two": (RECORD + "schema = [record('a'), record('b')]\ndef a_fused(x): return x\ndef fused(x): return x\n",
                   "b: there is no function b_fused(...)"),
    "path_without": (GOOD + "schema['paths'] = ['fused', 'slow']\n", "the path slow has no function: twice_slow(...) or slow"),
    "parameter": (GOOD + "def fused(x, axis): return x\n", "fused takes axis, which is no input or attribute; these are x"),
    "by_position": (GOOD + "def fused(x, /): return x\n", "arguments are passed by name, and x may not be"),
    "dtype": (GOOD + "schema['inputs'][0]['dtype'] = 'float32'\n", "\"float32\" is not a dtype"),
    "arrays": (GOOD + "arrays = 'jax'\n", "arrays = 'jax': \"numpy\" and \"torch\" are right"),
    "device": (GOOD + "device = 'cuda'\n", "device = 'cuda' needs arrays = \"torch\""),
}

TORCH = '''
import torch
arrays = "torch"
''' + RECORD + '''
schema = [record(name, ["f32", "bf16", "f8e4m3fn"]) for name in ("clean", "far", "unlucky", "gradient", "wide", "without")]
def twice(x): return x * 2
clean_unfused = far_unfused = unlucky_unfused = gradient_unfused = wide_unfused = without_unfused = twice
def clean_fused(x, out):
    assert x.is_leaf and x.grad is None and not x.requires_grad
    torch.mul(x, 2, out=out["y"])
def far_fused(x): return x.bfloat16().to(x.dtype) * 2
def unlucky_fused(x): raise RuntimeError("CUDA error: an illegal memory access")
def gradient_fused(x):
    x.requires_grad_()
    (x * x).sum().backward()
    return x.grad
def wide_fused(x): return x.to(torch.complex64)
def without_fused(x): return torch.special.i0(x.to(torch.complex64))
'''


def must(holds, what):
    if not holds:
        sys.exit("python_test.py: %s" % what)


def case(op, rows=3, columns=7, seed=1, dtype=None, **experiment):
    fill = {"fill": {"normal": {"mean": 0, "std": 1}, "seed": seed}}
    made = {"fusediff_case": 1, "op": op, "dims": {"R": rows, "C": columns}, "inputs": {"x": fill}}
    if dtype:
        made["dtypes"] = {"x": dtype}
    return {**made, "experiment": experiment} if experiment else made


EXPERIMENTS = {"remembers": {"history": {"calls": [case("remembers"), case("remembers"), case("remembers")]}},
               "shares_scratch": {"threads": {"count": 8, "rounds": 16, "mates": [case("shares_scratch", seed=2)]}}}


class Work:
    def __init__(self, folder, program):
        self.folder, self.program = folder, program

    def fusediff(self, *words, **more):
        environment = {**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"], **more}
        done = subprocess.run([str(self.program), *map(str, words)], cwd=self.folder, env=environment, text=True,
                              capture_output=True, timeout=280)
        return done.returncode, done.stdout, done.stderr

    def write(self, name, text):
        path = self.folder / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
        return path

    def check(self, target, cases, *words):
        """What is said of each case, the words of a finding in one line."""
        names = []
        for name, text in cases.items():
            names.append(self.write(name + ".json", json.dumps(text)).name)
        code, out, err = self.fusediff("check", *names, "--target", target, *words)
        must(code in (0, 1) and not err, "check: exit code %d: %s%s" % (code, out, err))
        said = re.split(r"^== (\w+)\.json\n", "" if len(names) == 1 else out, flags=re.M)[1:]
        said = dict(zip(said[::2], said[1::2])) if said else {name: out for name in cases}
        must(list(said) == list(cases), out)
        return {name: " ".join(text.split()) for name, text in said.items()}


def target_of(faults, is_clean):
    text = HEAD + "schema = [record(name) for name in %r]\n" % (list(faults),)
    for name, (before, body, _) in faults.items():
        out = ", out" if "out[" in body else ""
        clean = "out['y'][...] = twice(x)" if out else "return twice(x)"
        text += "\n%sdef %s_fused(x%s):\n    %s\n%s_unfused = twice\n" % (before, name, out, clean if is_clean else body, name)
    return text


def each_is_found(work, faults, *words):
    target = work.write("target.py", target_of(faults, False)).name
    said = work.check(target, {name: case(name, **EXPERIMENTS.get(name, {})) for name in faults}, *words)
    for name, (_, _, parts) in faults.items():
        for part in parts:
            must(part in said[name], "%s: %r is not in: %s" % (name, part, said[name]))
        must("host.py" not in said[name] or name in DEATHS, "%s: a frame that is not the user's: %s" % (name, said[name]))


def faults(work):
    each_is_found(work, FAULTS)


def deaths(work):
    each_is_found(work, DEATHS, "--timeout", "1s")


def clean(work):
    both = {**FAULTS, **DEATHS}
    target = work.write("target.py", target_of(both, True)).name
    for name, said in work.check(target, {name: case(name, **EXPERIMENTS.get(name, {})) for name in both}).items():
        must("pass" in said and "finding" not in said, "%s: %s" % (name, said))


def files(work):
    for name, (text, says) in FILES.items():
        path = work.write(name + ".py", text)
        code, out, err = work.fusediff("check", "--target", "./" + path.name, work.write("case.json", json.dumps(case("twice"))))
        must(code == 2 and not out and len(err.splitlines()) == 1 and says in err and path.name in err,
             "%s: exit code 2 and one line with %r, not %d: %s%s" % (name, says, code, out, err))
        must("Traceback" not in err, err)
    # Files beside the target are the user's, whatever they are called; so is the name of the target itself.
    for name in ("host", "fusediff_file", "json", "helper"):
        work.write(name + ".py", "import numpy as np\n" + GOOD + "mine = 'of %s'\n" % name)
    work.write("uses.py", GOOD + "import host, fusediff_file as f, helper\nassert (host.mine, helper.mine) == ('of host', 'of helper')\n")
    for name in ("uses", "json"):
        said = work.check("./%s.py" % name, {"one": case("twice")})
        must("pass" in said["one"], said)
    code, out, err = work.fusediff("check", "one.json", "--target", "./helper.py", "--target-option", "fast")
    must("fast" in out + err and "open_context" in out + err, out + err)
    code, out, err = work.fusediff("check", "one.json", "--target", "./helper.py", FUSEDIFF_PYTHON="/nowhere/python")
    must(code == 2 and len(err.splitlines()) == 1, out + err)


def torch(work):
    work.write("target.py", TORCH)
    cases = {"clean": case("clean"), "clean_bf16": case("clean", dtype="bf16"), "clean_f8": case("clean", dtype="f8e4m3fn"),
             "far": case("far", dtype="f32"), "unlucky": case("unlucky"), "wide": case("wide"), "without": case("without"),
             "gradient": case("gradient", dtype="f32", repeat={"count": 4}), "far_bf16": case("far", dtype="bf16")}
    for name in ("clean", "unlucky", "wide", "without"):
        cases[name]["dtypes"] = {"x": "f32"}
    said = work.check("./target.py", cases)
    for name in ("clean", "clean_bf16", "far_bf16", "gradient"):
        must("pass" in said[name] and "finding" not in said[name], "%s: %s" % (name, said[name]))
    must("finding" not in said["clean_f8"], said["clean_f8"])
    must("damage in far, output y" in said["far"], said["far"])
    must("RuntimeError: CUDA error: an illegal memory access (target.py:" in said["unlucky"], said["unlucky"])
    must("complex64; the schema says [3, 7], torch.float32" in said["wide"], said["wide"])
    must("skip" in said["without"] and "not implemented for 'ComplexFloat'" in said["without"], said["without"])


def campaign(work):
    """A worker that dies is started again, and the search goes on to what comes after."""
    own = {"frail": ("import os\n", "y = x * 2; y[:, 16:] *= 1.5; return y if x.size % 7 != 1 else os._exit(3)", [])}
    work.write("target.py", target_of(own, False))
    code, out, err = work.fusediff("fuzz", "--target", "./target.py", "--runs", 60, "--jobs", 1, "--out", "out")
    must(code == 1, "fuzz: exit code %d: %s%s" % (code, out, err))
    for found in ("crash in frail: fused: the process ended in run(): exit code 3", "damage in frail, output y"):
        must(found in out, "no %s in: %s%s" % (found, out, err))
    bundle = next((work.folder / "out/findings").glob("frail-damage-*"))
    code, out, err = work.fusediff("replay", bundle, "--target", "./target.py")
    must(code == 1 and "damage in frail" in out, out + err)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/default/bin")
    parser.add_argument("part", choices=["files", "faults", "clean", "deaths", "torch", "campaign"])
    options = parser.parse_args()
    needed = "import torch" if options.part == "torch" else "import numpy"
    if subprocess.run(["/usr/bin/python3", "-c", needed], capture_output=True).returncode:
        print("python_test: skipped, /usr/bin/python3 cannot " + needed)
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="fusediff_python_") as folder:
        globals()[options.part](Work(pathlib.Path(folder), options.bin.resolve() / "fusediff"))
    print("python_test: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
