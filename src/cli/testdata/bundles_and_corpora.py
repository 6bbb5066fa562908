#!/usr/bin/env python3
"""Bundles as archives, imports, manifests, merges and an interrupted minimisation, as a user runs them.

    bundles_and_corpora.py --bin FOLDER [NAME...]     NAME: bundle, hostile, imported, manifest, merge, minimize; all by default
"""
import argparse
import gzip
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "reports" / "sample" / "findings" / "moe_gating_topk-flip-expert_idx-f32-937d0d73"
PATIENCE = 600


class Place:
    """An empty folder, the programs, and a TMPDIR of its own that must be empty after every command."""

    def __init__(self, binary, folder):
        self.bin, self.folder, self.temporary = binary, folder, folder / "tmp"
        self.temporary.mkdir()

    def start(self, *arguments):
        environment = {**os.environ, "TMPDIR": str(self.temporary), "LC_ALL": "C"}
        return subprocess.Popen([str(self.bin / "fusediff"), *map(str, arguments)], cwd=self.folder, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process, code):
        out, err = process.communicate(timeout=PATIENCE)
        shown = f"{process.args}\nexit code {process.returncode}, expected {code}\n{out}\n{err}"
        assert code is None or process.returncode == code, shown
        left = list(self.temporary.iterdir())
        assert not left, f"left behind: {left}\n{shown}"
        return out, err

    def run(self, *arguments, code=0):
        return self.finish(self.start(*arguments), code)


def bundle(place):
    shutil.copytree(SAMPLE, place.folder / "b")
    os.symlink("/etc/passwd", place.folder / "b" / "link")
    out, err = place.run("bundle", "b")
    assert out.strip() == SAMPLE.name + ".tar.gz" and '"link" is left out' in err, (out, err)
    first = (place.folder / out.strip()).read_bytes()
    for file in (place.folder / "b").iterdir():
        os.utime(file, (1, 1), follow_symlinks=False)
    place.run("bundle", "b", "--output", "again.tar.gz")
    assert (place.folder / "again.tar.gz").read_bytes() == first
    with tarfile.open(place.folder / "again.tar.gz") as archive:
        names = {member.name for member in archive}
        assert f"{SAMPLE.name}/case.json" in names and all(m.uid == m.mtime == 0 for m in archive), names
    place.run("replay", "again.tar.gz", "--runs", "1", code=1)
    place.run("replay", "again.tar.gz", "--runs", "1", "--target", "planted_clean", code=0)
    subprocess.run(["tar", "czf", "hand.tar.gz", "-C", "b", "."], cwd=place.folder, check=True)
    (place.folder / "b" / "link").unlink()
    subprocess.run(["tar", "czf", "hand.tar.gz", "-C", "b", "."], cwd=place.folder, check=True)
    place.run("replay", "hand.tar.gz", "--runs", "1", code=1)
    place.run("minimize", "again.tar.gz", "--target", "planted", "--time", "20", "--output", "small.json")
    for name in ("case.json", "original.json", "finding.json", "environment.json", "inputs.safetensors"):
        for make in (os.mkfifo, os.mkdir, lambda path: os.symlink(SAMPLE / path.name, path)):
            shutil.copytree(SAMPLE, place.folder / "odd")
            (place.folder / "odd" / name).unlink(missing_ok=True)
            make(place.folder / "odd" / name)
            out, err = place.run("bundle", "odd", "--output", "odd.tar.gz", code=2)
            assert not out and err.count("\n") == 1 and f'odd: "{name}" is' in err, (name, out, err)
            assert not (place.folder / "odd.tar.gz").exists()
            shutil.rmtree(place.folder / "odd")
    (place.folder / "empty").mkdir()
    _, err = place.run("bundle", "empty", code=2)
    assert err.count("\n") == 1 and "is not a bundle" in err, err
    process = place.start("replay", "again.tar.gz", "--runs", "100000")
    while not list(place.temporary.iterdir()):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    place.finish(process, 130)


def hostile(place):
    good = {name: (SAMPLE / name).read_bytes() for name in ("case.json", "original.json", "finding.json", "environment.json")}

    def archive(name, change):
        path = place.folder / name
        with tarfile.open(path, "w:gz") as tar:
            for file, text in good.items():
                info = tarfile.TarInfo("b/" + file)
                info.size = len(text)
                tar.addfile(info, io.BytesIO(text))
            change(tar)
        return path

    def add(member, **fields):
        def change(tar):
            info = tarfile.TarInfo(member)
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(b"x" * info.size))
        return change

    inside = {"absolute": add("/x", size=1), "climbs": add("b/../../x", size=1), "twice": add("b/case.json", size=1),
              "symlink": add("b/l", type=tarfile.SYMTYPE, linkname="/etc"), "newline": add("b/a\nb", size=1),
              "hardlink": add("b/l", type=tarfile.LNKTYPE, linkname="b/case.json"), "backslash": add("b\\x", size=1),
              "fifo": add("b/p", type=tarfile.FIFOTYPE), "device": add("b/d", type=tarfile.CHRTYPE),
              "unicode": add("b/\u00e9", size=1), "long": add("b/" + "n" * 300, size=1),
              "many": lambda tar: [add(f"b/{i}")(tar) for i in range(300)]}
    paths = [archive(name + ".tar.gz", change) for name, change in inside.items()]
    whole = archive("whole.tar.gz", lambda tar: None).read_bytes()
    place.run("replay", "whole.tar.gz", "--runs", "1", code=1)
    for name, text in (("cut", whole[:-20]), ("half", whole[:len(whole) // 2]), ("text", b"hello"), ("none", b""),
                       ("zip", b"PK\3\4" + bytes(100)), ("flipped", whole[:300] + bytes([whole[300] ^ 1]) + whole[301:]),
                       ("twice_packed", gzip.compress(whole))):
        paths.append(place.folder / f"{name}.tar.gz")
        paths[-1].write_bytes(text)
    before = set(place.folder.iterdir())
    for path in paths:
        for command in ("replay", "minimize"):
            out, err = place.run(command, path.name, code=2)
            assert not out and err.count("\n") == 1 and err.startswith("fusediff: "), (path.name, out, err)
    assert set(place.folder.iterdir()) == before


def manifest(place):
    corpus = [ROOT / "corpus" / "add", ROOT / "corpus" / "moe_gating_topk"]
    place.run("manifest", *corpus, "--output", "a.jsonl")
    place.run("manifest", *reversed(corpus), "--output", "b.jsonl")
    text = (place.folder / "a.jsonl").read_text()
    assert text == (place.folder / "b.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    assert lines[0]["fusediff_manifest"] == 1 and {line["side"] for line in lines[1:]} == {"target", "against"}
    out, _ = place.run("manifest", "--compare", "a.jsonl", "b.jsonl")
    assert "nothing changed" in out, out
    place.run("manifest", "--compare", "a.jsonl")  # now, of the files that it names
    out, _ = place.run("manifest", "--compare", "a.jsonl", *corpus, "--target", "planted", "--against", "builtin:unfused",
                       code=1)
    assert "moe_gating_topk norm_out f32, target" in out and "first at index" in out, out
    assert "against: " not in out, out  # that side is the same
    out, _ = place.run("manifest", "--compare", "a.jsonl", *corpus, "--target", "planted", "--format", "json", code=1)
    assert json.loads(out)["changed"] is True
    (place.folder / "cut.jsonl").write_text(text[:-30])
    _, err = place.run("manifest", "--compare", "cut.jsonl", code=2)
    assert err.count("\n") == 1 and "line" in err, err
    place.run("manifest", "absent", code=2)
    place.run("manifest", ROOT / "corpus" / "softmax", "--output", "other.jsonl")
    (place.folder / "header.jsonl").write_text(text.splitlines(keepends=True)[0])
    (place.folder / "no_case").mkdir()
    (place.folder / "no_case" / "x.json").write_text("{")
    for arguments, lines in ((("--compare", "a.jsonl", "other.jsonl"), 1), (("--compare", "a.jsonl", "header.jsonl"), 1),
                             (("--compare", "header.jsonl", "a.jsonl"), 1), (("no_case", "--output", "none.jsonl"), 2)):
        out, err = place.run("manifest", *arguments, code=2)
        assert not out and err.count("\n") == lines and "nothing was compared" in err, (arguments, out, err)
    assert not (place.folder / "none.jsonl").exists()


def imported(place):
    suite = ROOT / "src" / "import" / "testdata" / "ttk_mhc.csv"
    header, row = suite.read_text().splitlines()[:2]
    (place.folder / "equal.csv").write_text("\n".join([header] + [row] * 50) + "\n")
    place.run("import", "equal.csv", "--out", "equal")
    assert len(list((place.folder / "equal").iterdir())) == 50
    place.run("import", suite, "--out", "cases")
    place.run("import", suite, "--out", "cases")  # the same content
    (place.folder / "cases" / "small_nograd.json").write_text("mine")
    (place.folder / "cases" / "small_grad.json").unlink()
    _, err = place.run("import", suite, "--out", "cases", code=2)
    assert err.count("\n") == 1 and "cases/small_nograd.json: is there already" in err, err
    assert [file.read_text() for file in (place.folder / "cases").iterdir()] == ["mine"]
    (place.folder / "bad.npy").write_bytes(b"\x93NUMPY\x01\x00")
    (place.folder / "kept").mkdir()
    for out in ("new", "new/in/it", "new/in/", "kept"):
        place.run("import", "bad.npy", "--op", "softmax", "--out", out, code=2)
    assert not (place.folder / "new").exists() and (place.folder / "kept").exists()


def features(place, *folders):
    """How many features libFuzzer counts in the folders, in a process that reports each case by itself."""
    answer = subprocess.run([str(place.bin / "fusediff-worker"), *map(str, folders), "-runs=0",
                             "-ignore_remaining_args=1", "--merging"], cwd=place.folder, capture_output=True, text=True,
                            timeout=PATIENCE, check=True)
    return int(re.findall(r"INITED .*?ft: (\d+)", answer.stderr)[-1])


def merge(place):
    if not (place.bin / "fusediff-worker").exists():
        print("merge: left out: fusediff-worker is not built")
        return
    runs = [place.folder / f"run {i}" for i in range(3)]
    for seed, run in enumerate(runs):
        place.run("fuzz", "--op", "softmax", "--op", "add", "--runs", "400", "--seed", seed + 1, "--jobs", "1", "--out", run)
    (runs[0] / "corpus" / "broken").write_text("{")
    (runs[1] / "corpus" / "other.json").write_text((ROOT / "corpus/add/plain.json").read_text().replace('"add"', '"ad"'))
    before = {file: file.read_bytes() for run in runs for file in (run / "corpus").iterdir()}
    _, err = place.run("merge", "--out", "one", *runs)
    assert "broken" in err and '"ad" is not an operator' in err, err
    place.run("merge", "--out", "two", *reversed(runs))
    assert before == {file: file.read_bytes() for run in runs for file in (run / "corpus").iterdir()}
    one, two = ({file.name: file.read_text() for file in (place.folder / name).iterdir()} for name in ("one", "two"))
    assert one == two and 0 < len(one) < len(before) - 2, (len(one), len(two), len(before))
    for run in runs:
        for name in ("broken", "other.json"):
            (run / "corpus" / name).unlink(missing_ok=True)
    union = features(place, *(run / "corpus" for run in runs))
    kept = features(place, place.folder / "one")
    print(f"merge: {len(one)} of {len(before) - 2} cases, {kept} of {union} features")
    assert kept == union
    place.run("merge", "--check", "one")
    (place.folder / "one" / "bad.json").write_text("[]")
    _, err = place.run("merge", "--check", "one", code=2)
    assert err.count("\n") == 1 and "bad.json" in err, err
    place.run("merge", "--out", "one", "two", code=2)  # not empty
    merge_with_killers(place)


def merge_with_killers(place):
    """A case that ends the process is named, and costs no other."""
    unruly = place.bin / "testdata" / "unruly.so"
    if not unruly.exists():
        print("merge: cases that end the process left out: unruly.so is not built")
        return
    (place.folder / "copy").mkdir()
    for size in (0, 1, 2, 3, 5, 6, 9):
        (place.folder / "copy" / f"n{size}.json").write_text(json.dumps({
            "fusediff_case": 1, "op": "copy", "dims": {"N": size}, "dtypes": {"x": "f32"},
            "inputs": {"x": {"fill": {"constant": 1}}}}))
    sides = ("--target", unruly, "--target-option")
    place.run("merge", "--out", "right", "copy", *sides, "")
    for how in ("exit", "kill"):
        _, err = place.run("merge", "--out", how, "copy", *sides, how)
        assert "n5.json: ends the process" in err, err
        assert 1 < len(list((place.folder / how).iterdir())) <= 7
        out, _ = place.run("manifest", "copy", *sides, how)
        ended = [json.loads(line) for line in out.splitlines() if '"died"' in line]
        assert [(line["dims"], line["side"]) for line in ended] == [("N=5", "target")], ended


def minimize(place):
    case = ROOT / "corpus" / "moe_gating_topk" / "report_a.json"
    process = place.start("minimize", case, "--target", "planted", "--time", "300", "--output", "small.json")
    while process.poll() is None and not (place.folder / "small.json").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, err = place.finish(process, 130)
    assert "interrupted: the smallest case so far is in small.json" in err, err
    place.run("check", "small.json", "--target", "planted", code=1)
    place.run("minimize", "small.json", "--target", "planted", "--time", "60", "--output", "small.json")
    assert json.loads((place.folder / "small.json").read_text())["dims"]["E"] == 2


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/default/bin")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    parts = {part.__name__: part for part in (bundle, hostile, imported, manifest, merge, minimize)}
    for name in options.names or parts:
        with tempfile.TemporaryDirectory(prefix="fusediff_cli_") as folder:
            parts[name](Place(options.bin.resolve(), pathlib.Path(folder)))
        print(f"{name}: ok", flush=True)


if __name__ == "__main__":
    sys.exit(main())
