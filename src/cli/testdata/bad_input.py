#!/usr/bin/env python3
"""Gives `fusediff check` 200 damaged cases, libraries and schemas; each must cost one clear line and exit code 2.

    bad_input.py --bin FOLDER --fixtures FOLDER [--list] [--keep FOLDER]

One line means: stderr is one line that begins with "fusediff: ", stdout is empty. The same inputs in every run. Each kind
begins with its undamaged original, which must not be refused. --list names the inputs, --keep leaves them in FOLDER.
"""
import argparse
import concurrent.futures
import copy
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SEEDS = ["add/plain", "add/transposed", "moe_gating_topk/report_a", "moe_gating_topk/softmax_groups", "moe_permute/plain",
         "moe_unpermute/plain", "mhc_pre_sinkhorn/plain", "sigmoid/special_values"]
CASES, LIBRARIES, SCHEMAS = 120, 50, 30
PATIENCE = 120  # seconds; a working program answers at once

SCHEMA = {
    "fusediff_schema": 1,
    "operators": [{
        "name": "copy",
        "paths": ["fused", "unfused"],
        "dims": {"N": {"range": [0, 64], "typical": [1, 8]}, "M": {"range": [1, 8]}},
        "where": ["N * M <= 256"],
        "inputs": [{"name": "x", "shape": ["N", "M"], "dtype": ["f32", "f16"]}],
        "outputs": [{"name": "y", "shape": ["N", "M"], "dtype": "=x", "stage": 1}],
    }],
}
COPY_CASE = {"fusediff_case": 1, "op": "copy", "dims": {"N": 2, "M": 2}, "dtypes": {"x": "f32"},
             "inputs": {"x": {"fill": {"constant": 1}}}}


def places(value, path=()):
    """Every path into a JSON value, the containers before what they hold."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from places(item, (*path, index))


def at(value, path):
    for step in path:
        value = value[step]
    return value


def changed(value, path, new):
    if not path:
        return new
    result = copy.deepcopy(value)
    at(result, path[:-1])[path[-1]] = new
    return result


def another_type(value):
    if isinstance(value, dict):
        return [1]
    if isinstance(value, list):
        return {"a": 1}
    return {} if isinstance(value, str) else "x"


def numbers(value):
    return [path for path in places(value) if isinstance(at(value, path), (int, float))
            and not isinstance(at(value, path), bool)]


def damaged_json(name, value, rng, extra):
    """(label, bytes) of one good JSON object, damaged in every way that its text allows."""
    text = json.dumps(value)
    for part in range(4):
        cut = len(text) * (2 * part + 1) // 8
        yield f"{name}, cut off at {cut}", text[:cut].encode()
    spots = [path for path in places(value) if path]
    for path in rng.sample(spots, 4):
        yield f"{name}, another type at {path}", json.dumps(changed(value, path, another_type(at(value, path)))).encode()
    for path in rng.sample(numbers(value), min(2, len(numbers(value)))):
        real = isinstance(at(value, path), float) or ("fill" in path and path[-1] != "seed")
        for new in ("NaN", "1e999", *(("-1e999",) if real else (10**30, -10**30))):
            spelled = json.dumps(changed(value, path, "@number@")).replace('"@number@"', str(new))
            yield f"{name}, {new} at {path}", spelled.encode()
    containers = [path for path in places(value) if isinstance(at(value, path), dict)]
    for path in rng.sample(containers, 2):
        yield f"{name}, an unknown key at {path}", json.dumps(changed(value, path, {**at(value, path), "fuse": 1})).encode()
    yield from extra


def damaged_cases(rng):
    good = {seed: json.loads((ROOT / "corpus" / f"{seed}.json").read_text()) for seed in SEEDS}
    every = [item for seed, case in good.items() for item in damaged_json(seed, case, rng, ())]
    case = good["add/plain"]
    text = json.dumps(case)
    nest = [f"{name} {depth} deep" for name, depth in (("arrays", 33), ("arrays", 100000), ("objects", 40))]
    deep = ["[" * 33 + "]" * 33, "[" * 100000 + "]" * 100000, '{"a":' * 40 + "1" + "}" * 40]
    whole = [(label, inner) for label, inner in zip(nest, deep)]
    whole += [(f"{label} in a value", text.replace('"op": "add"', '"op": ' + inner)) for label, inner in zip(nest, deep)]
    whole += [(f"version {version}", text.replace('"fusediff_case": 1', f'"fusediff_case": {version}'))
              for version in ("0", "2", "-1", "1.5", '"1"', "null", "4294967297", "1e300")]
    whole += [(f"without {key}", json.dumps({k: v for k, v in case.items() if k != key}))
              for key in ("fusediff_case", "op", "dims", "inputs")]
    whole += [("a key twice", text.replace('"op": "add"', '"op": "add", "op": "add"')),
              ("a dim twice", text.replace('"dims": {', '"dims": {"R": 1, ')),
              ("larger than the limit", text + " " * (2 << 20)),
              ("a string of 2 MiB", text.replace('"add"', '"' + "a" * (2 << 20) + '"')),
              ("a dim of 10^12", json.dumps(changed(case, ("dims", "R"), 10**12))),
              ("a dim of 2^63 - 1", json.dumps(changed(case, ("dims", "R"), 2**63 - 1))),
              ("a dim of -1", json.dumps(changed(case, ("dims", "R"), -1))),
              ("a dim of 1.5", json.dumps(changed(case, ("dims", "R"), 1.5))),
              ("a dim that is nan in words", json.dumps(changed(case, ("dims", "R"), "nan"))),
              ("nothing", ""), ("blanks", " \n\t \n"), ("null", "null"), ("a number", "7"), ("a list", "[]"),
              ("an empty object", "{}"), ("two objects", text + text), ("text behind", text + "x"),
              ("single quotes", text.replace('"', "'")), ("a comment", "// a case\n" + text),
              ("a comma at the end", text[:-1] + ",}")]
    whole = [(label, body.encode()) for label, body in whole]
    whole += [("a byte that is no UTF-8", text.replace("add", "a\xff").encode("latin-1")),
              ("half a surrogate", text.replace('"add"', '"\\ud800"').encode()),
              ("an overlong NUL", text.encode().replace(b"add", b"a\xc0\x80")),
              ("a NUL in a name", text.encode().replace(b"add", b"a\x00d")),
              ("UTF-16", text.encode("utf-16")),
              ("random bytes", bytes(rng.randrange(256) for _ in range(4096)))]
    return whole + rng.sample(every, CASES - len(whole)), text.encode()


def word(data, offset, form, value):
    return data[:offset] + struct.pack(form, value) + data[offset + struct.calcsize(form):]


def damaged_libraries(good, no_symbol, program, rng):
    """(label, bytes) of the ELF file `good`; None stands for a folder, ... for no file."""
    end = len(good)
    yield from ((f"cut off at {cut}", good[:cut]) for cut in
                (0, 1, 3, 4, 15, 16, 63, 64, 200, 1000, 4096, end // 8, end // 4, end // 2, end * 3 // 4, end - 4096, end - 1))
    yield from ((f"byte {i} of the magic number changed", word(good, i, "B", good[i] ^ 0x20)) for i in range(4))
    for label, offset, form, value in (("32 bit", 4, "B", 1), ("another byte order", 5, "B", 3 - good[5]),
                                       ("a relocatable file", 16, "<H", 1), ("an executable", 16, "<H", 2),
                                       ("a core", 16, "<H", 4), ("another machine", 18, "<H", 0x1234),
                                       ("program headers beyond the end", 32, "<Q", end * 2),
                                       ("program headers at the end of the world", 32, "<Q", 2**64 - 8),
                                       ("section headers beyond the end", 40, "<Q", end * 2),
                                       ("program headers of no size", 54, "<H", 0), ("no program headers", 56, "<H", 0),
                                       ("65535 program headers", 56, "<H", 65535)):
        yield label, word(good, offset, form, value)
    headers, count = struct.unpack_from("<Q", good, 32)[0], struct.unpack_from("<H", good, 56)[0]
    starts = [headers + 56 * i for i in range(count)]
    loads = [start for start in starts if struct.unpack_from("<I", good, start)[0] == 1]
    dynamic = next(start for start in starts if struct.unpack_from("<I", good, start)[0] == 2)
    yield "a segment beyond the end", word(good, loads[0] + 8, "<Q", end * 16)
    yield "a segment of 2^63 bytes", word(good, loads[-1] + 32, "<Q", 2**63)
    yield "a segment at the end of memory", word(good, loads[1] + 16, "<Q", 2**64 - 4096)
    bare = good
    for start in loads:
        bare = word(bare, start, "<I", 0)
    yield "no segments", bare
    yield "a dynamic section beyond the end", word(good, dynamic + 8, "<Q", end * 2)
    first = struct.unpack_from("<Q", good, dynamic + 8)[0]
    yield "an empty dynamic section", good[:first] + bytes(16) + good[first + 16:]
    size = struct.unpack_from("<Q", good, dynamic + 32)[0]
    entries = {struct.unpack_from("<Q", good, o)[0]: o for o in range(first, first + size, 16)}
    for label, tag in (("string table", 5), ("symbol table", 6)):
        yield f"a {label} nowhere", word(good, entries[tag] + 8, "<Q", 2**40 + 8)
    yield "all zeros", bytes(1 << 16)
    yield "text", b"this is no library\n" * 100
    yield "a script", b"#!/bin/sh\nexit 0\n"
    yield "an archive", b"!<arch>\n" + bytes(200)
    yield "random bytes", bytes(rng.randrange(256) for _ in range(4096))
    yield "a library without the symbol", no_symbol
    yield "a program", program
    yield "a folder", None
    yield "no file", ...


def damaged_schemas(rng):
    every = list(damaged_json("schema", SCHEMA, rng, ()))
    op = ("operators", 0)
    whole = [(label, json.dumps(changed(SCHEMA, path, new))) for label, path, new in (
        ("version 2", ("fusediff_schema",), 2), ("version \"1\"", ("fusediff_schema",), "1"),
        ("no operators", ("operators",), []), ("a shape that is cut off", (*op, "inputs", 0, "shape"), ["N +", "M"]),
        ("a shape of an unknown dim", (*op, "inputs", 0, "shape"), ["K", "M"]),
        ("a shape that overflows", (*op, "inputs", 0, "shape"), ["N * 9223372036854775807 * 9223372036854775807", "M"]),
        ("a range that is reversed", (*op, "dims", "N", "range"), [64, 0]),
        ("a range up to 10^30", (*op, "dims", "N", "range"), [0, 10**30]),
        ("an unknown dtype", (*op, "inputs", 0, "dtype"), "f31"),
        ("a dtype of nobody", (*op, "outputs", 0, "dtype"), "=z"),
        ("rules that nothing satisfies", (*op, "where"), ["N > M", "N < M"]),
        ("an operator twice", ("operators",), [SCHEMA["operators"][0]] * 2),
        ("a name with a blank", (*op, "name"), "co py"), ("no paths", (*op, "paths"), []))]
    whole += [("nothing", ""), ("null", "null"), ("nested 100000 deep", "[" * 100000), ("a list", "[]"),
              ("a key twice", json.dumps(SCHEMA).replace('"paths":', '"paths": ["fused"], "paths":'))]
    whole = [(label, body.encode()) for label, body in whole]
    whole += [("a byte that is no UTF-8", json.dumps(SCHEMA).encode().replace(b"copy", b"co\xff\xfe"))]
    return whole + rng.sample(every, SCHEMAS - len(whole))


class Bench:
    """Files in a folder, and the command lines that take them."""

    def __init__(self, folder, binary, fixtures):
        self.folder, self.program = folder, str(binary / "fusediff")
        self.fixture = fixtures / "schema_from_file.so"
        self.runs = []  # (label, arguments, environment, is refused)

    def file(self, name, body):
        path = self.folder / name
        if body is None:
            path.mkdir()
        elif body is not ...:
            path.write_bytes(body)
        return str(path)

    def add(self, label, arguments, refused, **environment):
        self.runs.append((label, [self.program, "check", *arguments], environment, refused))

    def fill(self, binary, fixtures):
        rng = random.Random(20)
        cases, good_case = damaged_cases(rng)
        self.add("case: undamaged", [self.file("good.json", good_case)], False)
        for index, (label, body) in enumerate(cases):
            self.add(f"case: {label}", [self.file(f"case{index}.json", body)], True)

        plain = str(ROOT / "corpus" / "add" / "plain.json")
        good = (binary / "targets" / "builtin.so").read_bytes()
        self.add("library: undamaged", [plain, "--target", self.file("good.so", good)], False)
        for index, (label, body) in enumerate(
                damaged_libraries(good, (fixtures / "no_symbol.so").read_bytes(), (binary / "fusediff").read_bytes(), rng)):
            self.add(f"library: {label}", [plain, "--target", self.file(f"library{index}.so", body)], True)

        copy_case = self.file("copy.json", json.dumps(COPY_CASE).encode())
        for index, (label, body) in enumerate([("undamaged", json.dumps(SCHEMA).encode()), *damaged_schemas(rng)]):
            self.add(f"schema: {label}", [copy_case, "--target", str(self.fixture)], index > 0,
                     FUSEDIFF_FIXTURE_SCHEMA=self.file(f"schema{index}.json", body))


def what_is_wrong(run):
    label, command, environment, refused = run
    try:
        done = subprocess.run(command, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=PATIENCE, check=False)
    except subprocess.TimeoutExpired:
        return f"{label}: no end after {PATIENCE} s"
    err = done.stderr.decode("utf-8", errors="backslashreplace")
    one_line = err.startswith("fusediff: ") and err.count("\n") == 1 and err.endswith("\n")
    told = f"exit code {done.returncode}, stdout {done.stdout[:200]!r}, stderr {err[:400]!r}"
    if refused and (done.returncode != 2 or done.stdout or not one_line):
        return f"{label}: {told}"
    if not refused and (done.returncode != 0 or err):
        return f"{label}: is good, but {told}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", required=True, type=pathlib.Path)
    parser.add_argument("--fixtures", required=True, type=pathlib.Path)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fusediff_bad_input_") as folder:
        if options.keep:
            options.keep.mkdir(parents=True)
        bench = Bench(options.keep or pathlib.Path(folder), options.bin.resolve(), options.fixtures.resolve())
        bench.fill(options.bin.resolve(), options.fixtures.resolve())
        kinds = {kind: sum(label.startswith(kind + ":") for label, _, _, refused in bench.runs if refused)
                 for kind in ("case", "library", "schema")}
        if options.list:
            print("\n".join(label for label, _, _, refused in bench.runs if refused))
        if list(kinds.values()) != [CASES, LIBRARIES, SCHEMAS]:
            print(f"bad_input: {kinds} are made, {CASES}, {LIBRARIES} and {SCHEMAS} are wanted")
            return 1
        with concurrent.futures.ThreadPoolExecutor(max_workers=4) as pool:
            wrong = [what for what in pool.map(what_is_wrong, bench.runs) if what]
    print("\n".join([*wrong, f"bad_input: {sum(kinds.values())} damaged inputs {kinds}, {len(wrong)} not as they should be"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
