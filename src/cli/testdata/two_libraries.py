#!/usr/bin/env python3
"""Replay of a bundle whose sides are two builds of one library, which no name tells apart; and of one that was found with
options, which a bundle does not bring with it.

    two_libraries.py --bin FOLDER
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "reports" / "sample" / "findings" / "moe_gating_topk-flip-expert_idx-f32-937d0d73"


def rewrite(file, change):
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document))


def two_builds(bundle):
    rewrite(bundle / "finding.json", lambda f: f.update(targets=["planted", "planted"], paths=["fused", "fused"]))

    def environment(e):
        e["target"] = {"name": "planted", "file": "new/planted.so", "file_xxh3_128": "1"}
        e["against"] = {"name": "planted", "file": "old.so", "file_xxh3_128": "2"}

    rewrite(bundle / "environment.json", environment)


def say_how_opened(bundle, **settings):
    rewrite(bundle / "environment.json", lambda e: e["target"].update(settings))


def check_settings(replay, bundle):
    says = f"fusediff: {bundle}: is run with %s, but was found with these, which show it again: %s\n"
    code, err = replay(bundle)
    assert code == 1 and not err, (code, err)  # the sample says nothing of options
    say_how_opened(bundle, options="x", isolated=True, variables=["A=b c"])
    code, err = replay(bundle)
    assert code == 1 and err == says % ("no option", "--target-option x --target-env 'A=b c'"), (code, err)
    say_how_opened(bundle, options="")
    code, err = replay(bundle, "--target-env", "A=1")
    assert code == 1 and err == says % ("--target-env A=1", "--target-env 'A=b c'"), (code, err)
    code, err = replay(bundle, "--target-env", "A=b c")
    assert code == 1 and not err, (code, err)
    say_how_opened(bundle, variables=[])
    code, err = replay(bundle)
    assert code == 1 and err == says % ("no option", "--isolate"), (code, err)
    code, err = replay(bundle, "--isolate")
    assert code == 1 and not err, (code, err)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/default/bin")
    program = parser.parse_args().bin.resolve() / "fusediff"

    def replay(bundle, *sides):
        made = subprocess.run([program, "replay", bundle, "--runs", "1", *sides], capture_output=True, text=True)
        return made.returncode, made.stderr

    with tempfile.TemporaryDirectory(prefix="fusediff_cli_") as folder:
        bundle = pathlib.Path(folder) / "b"
        shutil.copytree(SAMPLE, bundle)
        check_settings(replay, shutil.copytree(SAMPLE, pathlib.Path(folder) / "settings"))
        code, err = replay(bundle, "--target", "planted")
        assert code == 1, (code, err)  # the other side comes with fusediff
        two_builds(bundle)
        for sides, rest in ((("--target", "planted"), ""), ((), ", --target the first")):
            code, err = replay(bundle, *sides)
            assert code == 2, (code, err)
            assert err == (f'fusediff: {bundle}: compares two libraries, "planted (planted.so)" and "planted (old.so)"; '
                           f"--against names the other{rest}\n"), err
        code, err = replay(bundle, "--target", "planted", "--against", "planted_clean:fused")
        assert code in (0, 1) and not err, (code, err)
    print("two_libraries: ok")


if __name__ == "__main__":
    sys.exit(main())
