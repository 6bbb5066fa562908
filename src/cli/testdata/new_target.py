#!/usr/bin/env python3
"""fusediff new-target as a user goes on with it: the folder is moved away, built, tested, broken; and what is refused.

    new_target.py --bin FOLDER
"""
import argparse
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
WARNINGS = "-Wall -Wextra -Wconversion -Wshadow -Werror"
NAME = "test"  # CMake and CTest have targets of that name


def must(holds, what):
    if not holds:
        sys.exit(f"new_target.py: {what}")


def run(*command, code=0, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=280, **options)
    must(done.returncode == code, f"{command}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
    return done


def refused(program, work, *arguments, says, **options):
    before = sorted(work.rglob("*"))
    done = run(program, "new-target", *arguments, code=2, cwd=work, **options)
    must(len(done.stderr.splitlines()) == 1 and not done.stdout and says in done.stderr,
         f"{arguments}: one line with {says!r}, not {done.stderr!r}{done.stdout!r}")
    must(sorted(work.rglob("*")) == before, f"{arguments}: refused, and left something behind")


def refusals(program, work):
    refused(program, work, "mine", says="mine: is there already")
    (work / "taken").write_text("of its owner\n")
    refused(program, work, "taken", says="taken: is there already")
    must((work / "taken").read_text() == "of its owner\n", "a file was overwritten")
    (work / "link").symlink_to("nowhere")
    refused(program, work, "link", says="link: is there already")
    refused(program, work, "other", "--dir", "taken", says="taken")
    refused(program, work, "other", "--dir", "taken/deeper", says="taken/deeper")
    # A disk that is full halfway leaves no half of a folder.
    refused(program, work, "other", says="other/",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000)))


def written(program, work):
    """The folder that new-target makes, in a place with a space, and moved away from there."""
    done = run(program, "new-target", NAME, "--dir", "a folder/b", cwd=work)
    folder = work / "a folder/b" / NAME
    must(f"a folder/b/{NAME}/{NAME}.cpp" in done.stdout, done.stdout)
    must(f"'a folder/b/'{NAME}/build" in done.stdout, done.stdout)
    for header in [ROOT / "src/target/fusediff_target.h", *sorted((ROOT / "src/targets/kit").glob("*.h"))]:
        copy = folder / "fusediff" / (f"kit/{header.name}" if header.parent.name == "kit" else header.name)
        must(copy.is_file() and copy.read_bytes() == header.read_bytes(), f"{copy}: is not {header}")
    own = [file for file in folder.rglob("*") if file.is_file() and "fusediff" not in file.parent.parts[-2:]]
    must(sorted(file.name for file in own) == ["CMakeLists.txt", "README.md", f"{NAME}.cpp", f"{NAME}_test.cpp"], own)
    for file in own:
        must(not re.search(r"my_ops|@\w+@", file.read_text()), f"{file}: a word of the template is left")
    return folder.rename(work / "moved")


def builds_and_is_clean(folder, has_worker):
    run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_CXX_FLAGS={WARNINGS}")
    run("cmake", "--build", folder / "build")
    must((folder / "build" / f"{NAME}.so").is_file(), "no library where README.md of the folder says")
    tests = run("ctest", "--test-dir", folder / "build", *(() if has_worker else ("-R", "unit")), "--output-on-failure")
    must(f"{NAME}.unit" in tests.stdout and (f"{NAME}.fuzz" in tests.stdout) == has_worker, tests.stdout)


def notices(folder, old, new, has_worker):
    """Its tests fail where the kernel is wrong, and go on from a clean state."""
    source = folder / f"{NAME}.cpp"
    text = source.read_text()
    must(text.count(old) == 1, f"{old!r} does not stand once in {source}")
    source.write_text(text.replace(old, new))
    run("cmake", "--build", folder / "build")
    run("ctest", "--test-dir", folder / "build", "-R", "unit", code=8)
    if not has_worker:
        return
    fuzz = run("ctest", "--test-dir", folder / "build", "-R", "fuzz", "--output-on-failure", code=8)
    must("unwritten in softsign, output y" in fuzz.stdout, fuzz.stdout)
    source.write_text(text)


def compiles_as_its_head_says(folder):
    line = re.search(r"^//   (g\+\+ .*)$", (folder / f"{NAME}.cpp").read_text(), re.M)[1]
    run("sh", "-c", line, cwd=folder)
    must((folder / f"{NAME}.so").is_file(), line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, default=ROOT / "build/default/bin")
    folder = parser.parse_args().bin.resolve()
    program = folder / "fusediff"
    has_worker = (folder / "fusediff-worker").is_file()
    with tempfile.TemporaryDirectory(prefix="fusediff_new_target_") as scratch:
        work = pathlib.Path(scratch)
        run(program, "new-target", "mine", cwd=work)
        must((work / "mine/mine.cpp").is_file(), "no folder in the current one")
        refusals(program, work)
        moved = written(program, work)
        builds_and_is_clean(moved, has_worker)
        notices(moved, "i < count", "i + 4 <= count", has_worker)
        if shutil.which("g++"):
            compiles_as_its_head_says(moved)
    print("new_target: ok")


if __name__ == "__main__":
    sys.exit(main())
