#!/usr/bin/env python3
"""Runs a user's way with a ledger through the programs: a finding, an entry for it, the same fuzz again, and what ends it.

    ledger.py --bin FOLDER
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

TARGET = "planted_report_b2"
FUZZ = ["--target", TARGET, "--op", "mhc_pre_sinkhorn_grad", "--experiment", "pair", "--runs", "3000", "--jobs", "1"]
SKIPPED = 77  # as CMakeLists.txt tells ctest
ISSUE = "https://example.org/issues/1"


class Programs:
    def __init__(self, folder, work):
        self.program, self.work = pathlib.Path(folder).resolve() / "fusediff", work

    def run(self, *arguments, code):
        done = subprocess.run([self.program, *arguments], cwd=self.work, capture_output=True, text=True, timeout=300)
        if done.returncode != code:
            sys.exit(f"fusediff {' '.join(arguments)}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}")
        return done

    def refused(self, *arguments, says):
        done = self.run(*arguments, code=2)
        lines = done.stderr.splitlines()
        must(len(lines) == 1 and not done.stdout and says in lines[0], f"one line with {says!r}, not {done.stderr!r}")


def must(holds, what):
    if not holds:
        sys.exit("ledger.py: " + what)


def at_once(fusediff, work, bundle):
    """Entries of many processes, each of a scope of its own; the ledger goes by its name and by a link."""
    (work / "repository").mkdir()
    (work / "shared.json").symlink_to("repository/shared.json")
    (work / "repository" / "shared.json").write_text('{"fusediff_ledger": 1, "known": []}')
    names = ("shared.json", "repository/shared.json")
    adds = [subprocess.Popen([fusediff.program, "ledger", "add", bundle, "--issue", ISSUE, "--scope", f"target_{i}",
                              "--ledger", names[i % 2]], cwd=work, stdout=subprocess.DEVNULL) for i in range(40)]
    must(not any([add.wait(timeout=300) for add in adds]), "each of 40 at once is done")
    known = json.loads((work / "repository" / "shared.json").read_text())["known"]
    must({entry["scope"]["target"] for entry in known} == {f"target_{i}" for i in range(40)},
         f"40 at once leave 40 entries, not {len(known)}")
    must((work / "shared.json").is_symlink(), "a link stays one")
    must([path.name for path in (work / "repository").iterdir()] == ["shared.json"], "nothing is left beside the ledger")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", required=True)
    options = parser.parse_args()
    if not (pathlib.Path(options.bin) / "fusediff-worker").exists():
        print("skipped: fusediff-worker is not built")
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as name:
        work = pathlib.Path(name)
        fusediff = Programs(options.bin, work)
        ledger = work / "ledger.json"

        fusediff.run("fuzz", *FUZZ, "--out", "first", code=1)
        bundles = sorted(str(path) for path in (work / "first" / "findings").iterdir())
        must(bundles, "nothing was found")
        fusediff.run("ledger", "add", *bundles, "--issue", ISSUE, "--ledger", "ledger.json", code=0)
        must(len(json.loads(ledger.read_text())["known"]) == len(bundles), "an entry for each bundle")
        again = fusediff.run("ledger", "add", bundles[0], "--issue", ISSUE, "--reason", "waits for the vendor", "--ledger",
                             "ledger.json", code=0)
        must(again.stdout.startswith("updated"), "an entry that is there is replaced")
        must(len(json.loads(ledger.read_text())["known"]) == len(bundles), "the rest is kept")
        fusediff.run("ledger", "check", "ledger.json", code=0)

        known = fusediff.run("fuzz", *FUZZ, "--out", "second", "--ledger", "ledger.json", code=0)
        must(ISSUE in known.stdout and "0 new" in known.stdout, "the summary says what is known: " + known.stdout)
        said = json.loads(fusediff.run("report", "second", "--ledger", "ledger.json", "--format", "json", code=0).stdout)
        must(all(f["standing"] == "known" and f["ledger"]["issue"] == ISSUE for f in said["findings"]), "marked in JSON")
        must("known" in fusediff.run("report", "second", "--ledger", "ledger.json", code=0).stdout, "marked in text")
        fusediff.run("report", "second", code=1)

        entries = json.loads(ledger.read_text())
        gone = dict(entries["known"][0], signature="bits mhc_pre_sinkhorn_grad fused/unfused f64 grad_x flip stage 9")
        elsewhere = dict(gone, signature="bits silu fused/unfused f32 y rounding stage 1")
        entries["known"] += [gone, elsewhere]
        ledger.write_text(json.dumps(entries))
        said = json.loads(fusediff.run("report", "second", "--ledger", "ledger.json", "--format", "json", code=0).stdout)
        must([e["signature"] for e in said["vanished"]] == [gone["signature"]],
             "vanished is what the run covered and did not show")

        for entry in entries["known"]:
            entry["expires"] = "2020-01-01"
        ledger.write_text(json.dumps(entries))
        must("expired" in fusediff.run("fuzz", *FUZZ, "--out", "third", "--ledger", "ledger.json", code=1).stdout,
             "an expired entry fails the run and is named")

        ledger.write_text(ledger.read_text().replace("2020-01-01", "2027-02-30"))
        for command in (["ledger", "check", "ledger.json"], ["report", "second", "--ledger", "ledger.json"],
                        ["fuzz", *FUZZ, "--out", "fourth", "--ledger", "ledger.json"]):
            fusediff.refused(*command, says="/known/0/expires")
        fusediff.refused("ledger", "add", bundles[0], "--ledger", "new.json", says="--issue")
        for option, value in (("--expires", "2020-01-01"), ("--expires", "tomorrow"), ("--expires", ""),
                              ("--scope", ":"), ("--scope", ""), ("--scope", "planted:"), ("--scope", ":1"),
                              ("--scope", "a\nb"), ("--reason", "a\x1b[2Jb"), ("--issue", "a\nb")):
            issue = [] if option == "--issue" else ["--issue", ISSUE]
            fusediff.refused("ledger", "add", bundles[0], *issue, option, value, "--ledger", "new.json", says=option)
        must(not (work / "new.json").exists(), "nothing is written of what is refused")
        at_once(fusediff, work, bundles[0])
        fusediff.refused("ledger", "chek", "ledger.json", says='did you mean "check"')


if __name__ == "__main__":
    main()
