#!/usr/bin/env python3
"""Captured tensors that no case's JSON can hold, all the way from an .npz to an issue, as a user goes it.

    large_captured.py --bin FOLDER --fixtures FOLDER [NAME...]     NAME: becomes_small, stays_large; both by default
"""
import argparse
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

from bundles_and_corpora import PATIENCE, ROOT, Place

EXPERTS = 64
TIED = {12: (float.fromhex("0x1.2c6638p+1"), float.fromhex("0x1.878acp-6")),  # x and bias of two picks: their ranks
        47: (float.fromhex("0x1.a3927p+0"), float.fromhex("0x1.9648cp-4"))}   # are the same, and above all others


def write_npz(path, tensors):
    """{name: (shape, values)} in f32."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, (shape, values) in tensors.items():
            header = str({"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
            header += " " * (-(len(header) + 11) % 64) + "\n"
            archive.writestr(name + ".npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                             struct.pack(f"<{len(values)}f", *values))


def routing_step(tokens, tied_row):
    """Scores of which one row alone is beyond 2, where the planted fault is, and on a tie."""
    rng = random.Random(tokens)
    some = [rng.uniform(-1, 1) for _ in range(4096)]
    x = [some[(token * 17 + e * 31) % 4096] for token in range(tokens) for e in range(EXPERTS)]
    bias = [rng.uniform(-0.05, 0.05) for _ in range(EXPERTS)]
    for expert, (score, added) in TIED.items():
        x[tied_row * EXPERTS + expert] = score
        bias[expert] = added
    return {"gate_logits": ([tokens, EXPERTS], x), "bias": ([EXPERTS], bias)}


def names_in(folder):
    return {file.name for file in folder.iterdir()}


def finding_of(run, cls, name, fill):
    """The one of that class whose original is the captured input, unchanged."""
    assert not list((run / "found").iterdir()), "findings that no bundle was made of"
    folders = []
    for folder in sorted((run / "findings").iterdir()):
        given = json.loads((folder / "original.json").read_text())["inputs"][name]
        if json.loads((folder / "finding.json").read_text())["class"] == cls and given == {"fill": {"bits": fill}}:
            folders.append(folder)
    assert folders, sorted((run / "findings").iterdir())
    return folders[0]


def small_and_whole(case):
    """Nothing beside it is needed."""
    assert ".safetensors" not in case.read_text() and case.stat().st_size < 4096, case.read_text()[:500]


def bundle_goes_around(place, folder, seconds, *sides):
    """Replayed from its folder and from its archive, which is minimised to a file that stands by itself."""
    place.run("replay", folder, "--runs", "1", *sides, code=1)
    place.run("bundle", folder, "--output", "b.tar.gz")
    away = place.folder / "away"
    folder.rename(away)  # the archive alone
    place.run("replay", "b.tar.gz", "--runs", "1", *sides, code=1)
    place.run("minimize", "b.tar.gz", "--time", seconds, "--output", "again.json", *sides)
    away.rename(folder)


def corpora_go_around(place, run, *sides):
    """What a run leaves: a manifest of it, a merge, and another run that starts from either."""
    named = [file for file in (run / "corpus").iterdir() if ".safetensors#" in file.read_text()]
    assert named, "no case of the corpus names a file"
    shutil.copytree(run, place.folder / "moved", symlinks=True)
    out, err = place.run("manifest", "moved", "--output", "run.jsonl", *sides)
    assert "left out: " not in err, err
    out, err = place.run("merge", "--out", "merged", "moved", *sides)
    assert " 0 refused" in out, (out, err)
    shutil.rmtree(place.folder / "moved")
    kept = [file for file in (place.folder / "merged").iterdir() if ".safetensors#" in file.read_bytes().decode("latin1")
            and file.suffix == ".json"]
    assert kept, names_in(place.folder / "merged")
    out, err = place.run("merge", "--check", "merged", *sides)
    place.run("manifest", "merged", "--output", "merged.jsonl", *sides)
    place.run("check", kept[0], *sides, code=None)
    place.run("merge", "--out", "merged_again", "merged", *sides)
    assert names_in(place.folder / "merged_again") == names_in(place.folder / "merged")
    for corpus in (run / "corpus", place.folder / "merged"):
        after = place.folder / ("from_" + corpus.name)
        place.run("fuzz", "--experiment", "pair", "--jobs", "1", "--runs", "40", "--corpus", corpus, "--out", after,
                  *sides, code=None)
        out, _ = place.run("report", after, "--format", "json", code=None)
        assert "not a case" not in out, out[:3000]  # which it would be without its tensors


def becomes_small(place):
    if not (place.bin / "fusediff-worker").exists():
        print("becomes_small: left out: fusediff-worker is not built")
        return
    sides = ("--target", "planted_report_a")
    for tokens, row in ((4000, 3111), (20000, 17777)):
        step, mine, run = (place.folder / f"{what}{tokens}" for what in ("step", "mine", "run"))
        write_npz(step.with_suffix(".npz"), routing_step(tokens, row))
        place.run("import", step.with_suffix(".npz"), "--op", "moe_gating_topk", "--map", "x=gate_logits", "--attr", "k=1",
                  "--out", mine)
        assert names_in(mine) == {step.name + ".json", step.name + ".safetensors"}
        place.run("fuzz", *sides, "--op", "moe_gating_topk", "--experiment", "pair", "--jobs", "1", "--runs", "20",
                  "--corpus", mine, "--out", run, code=1)
        folder = finding_of(run, "flip", "x", "original.safetensors#captured1")
        original = json.loads((folder / "original.json").read_text())
        assert original["dims"]["T"] == tokens, original["dims"]
        case = json.loads((folder / "case.json").read_text())
        assert case["dims"]["T"] < tokens / 2, case["dims"]
        assert {"inputs.safetensors", "outputs.safetensors", "ISSUE.md", "repro.py"} <= names_in(folder)
    bundle_goes_around(place, folder, 120, *sides)
    small_and_whole(place.folder / "again.json")
    dims = json.loads((place.folder / "again.json").read_text())["dims"]
    assert dims["T"] == 1 and dims["E"] == 2, dims
    assert names_in(place.folder) >= {"again.json"} and not list(place.folder.glob("again.json.*"))
    place.run("check", "again.json", *sides, code=1)
    corpora_go_around(place, run, *sides, "--op", "moe_gating_topk")
    # One that is ended before anything smaller is found still stands by itself, and goes on from where it is.
    place.run("minimize", mine / "step20000.json", *sides, "--time", "0.001", "--output", "half.json")
    shutil.rmtree(mine)
    place.run("check", "half.json", *sides, code=1)
    place.run("minimize", "half.json", *sides, "--time", "120", "--output", "half.json")
    small_and_whole(place.folder / "half.json")
    assert not list(place.folder.glob("half.json.*")), "its tensors are not needed any more"


def python_with_numpy():
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import numpy"], capture_output=True, check=False).returncode == 0:
            return python
    return None


def stays_large(place):
    if not (place.bin / "fusediff-worker").exists():
        print("stays_large: left out: fusediff-worker is not built")
        return
    library = place.fixtures / "needs_much.so"
    sides = ("--target", library)
    rng = random.Random(1)
    write_npz(place.folder / "step.npz", {"x": ([400000], [rng.random() for _ in range(400000)])})
    place.run("import", "step.npz", "--op", "copy", "--target", library, "--out", "mine")
    place.run("fuzz", *sides, "--experiment", "pair", "--jobs", "1", "--runs", "20", "--corpus", "mine", "--out", "run",
              code=1)
    folder = finding_of(place.folder / "run", "damage", "x", "original.safetensors#captured0")
    shutil.rmtree(place.folder / "mine")
    assert {"case.safetensors", "original.safetensors", "inputs.safetensors", "ISSUE.md", "repro.py"} <= names_in(folder)
    case, finding = (json.loads((folder / name).read_text()) for name in ("case.json", "finding.json"))
    assert 150000 < case["dims"]["N"] <= 200000, case["dims"]
    assert finding["replay"]["same"] == finding["replay"]["runs"] > 0, finding["replay"]
    assert not [note for note in finding.get("notes", []) if "not kept" in note or "failed" in note], finding["notes"]
    bundle_goes_around(place, folder, 2, *sides)
    beside = [file.name for file in place.folder.glob("again.json.*")]
    assert beside in (["again.json.safetensors"], ["again.json.2.safetensors"]), beside
    shutil.copytree(place.folder, place.folder / "elsewhere", ignore=lambda _, names: set(names) - {"again.json", *beside})
    place.run("check", "elsewhere/again.json", *sides, code=1)
    _, err = place.run("minimize", folder, "--time", "1", *sides, code=2)
    assert err.splitlines()[-1].startswith("fusediff: ") and "--output FILE" in err, err
    run_script(place, folder, library)


def run_script(place, folder, library):
    python = python_with_numpy()
    if python is None:
        print("stays_large: repro.py left out: no Python here has numpy")
        return
    bare = place.folder / "bare"
    bare.mkdir()
    for name in ("repro.py", "inputs.safetensors", "outputs.safetensors"):
        shutil.copy(folder / name, bare / name)

    def script(code):
        answer = subprocess.run([python, str(bare / "repro.py"), str(library)], capture_output=True, text=True,
                                timeout=PATIENCE, check=False)
        assert answer.returncode == code, (answer.returncode, answer.stdout, answer.stderr)
        return answer.stderr

    script(1)
    (bare / "inputs.safetensors").unlink()
    err = script(2)
    assert err.count("\n") == 1 and "inputs.safetensors" in err and "belongs beside this script" in err, err


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/default/bin")
    parser.add_argument("--fixtures", type=pathlib.Path, default=ROOT / "build/default/src/cli/fixtures")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    parts = {part.__name__: part for part in (becomes_small, stays_large)}
    for name in options.names or parts:
        with tempfile.TemporaryDirectory(prefix="fusediff_large_") as folder:
            place = Place(options.bin.resolve(), pathlib.Path(folder))
            place.fixtures = options.fixtures.resolve()
            parts[name](place)
        print(f"{name}: ok", flush=True)


if __name__ == "__main__":
    sys.exit(main())
