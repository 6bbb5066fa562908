# ---- the program ---------------------------------------------------------------------------------------------------


def accused_calls(target, against):
    """The calls of the side that the finding accuses, with the library that makes them."""
    side = FINDING["accused"]
    if side == "against" and CALLS["against"] and against is None:
        raise Unusable("the finding accuses %s, path %s: give its library as AGAINST.so" % (
            FINDING["targets"][1], FINDING["paths"][1]))
    if side == "against" and CALLS["against"]:
        return [(against, plan) for plan in CALLS["against"]]
    return [(target, plan) for plan in CALLS["target"]]


def in_own_process(args, say, how="plain"):
    """True or False as look() says; None when the library ended its process, or did not come back in time."""
    with tempfile.TemporaryDirectory() as folder:
        answer = os.path.join(folder, "answer.json")
        command = [sys.executable, os.path.abspath(__file__)] + sys.argv[1:] + ["--answer", answer, "--how", how]
        limit = args.seconds if FINDING["class"] == "hang" else 3 * args.seconds + 60
        try:
            code = subprocess.run(command, stdout=sys.stderr, timeout=limit).returncode
        except subprocess.TimeoutExpired:
            say("the call did not come back within %g s" % limit)
            return None
        if not os.path.exists(answer):
            signals = {s.value: s.name for s in signal.Signals}
            how_ended = signals.get(-code, -code) if code < 0 else "exit code %d" % code
            say("the library ended the process: %s" % how_ended)
            return None
        with open(answer) as file:
            found = json.load(file)
    for line in found["lines"]:
        say(line)
    if found["unusable"]:
        raise Unusable(found["unusable"])
    return found["there"]


def answer(args):
    """The part that loads the libraries. Its answer is a file: nothing that a library prints is taken for it."""
    lines, there, unusable = [], None, ""
    np.seterr(all="ignore")
    try:
        target = Library(args.library, args.target_option)
        against = target if FINDING["targets"][0] == FINDING["targets"][1] else None
        if args.against:
            against = Library(args.against, args.against_option)
        there = look(target, against, lines.append, args)
    except Unusable as error:
        unusable = str(error)
    except Exception as error:
        unusable = "this script failed: %s: %s" % (type(error).__name__, error)
    with open(args.answer, "w") as file:
        json.dump({"lines": lines, "there": bool(there), "unusable": unusable}, file)
    file.close()
    os._exit(0)  # a library's own clean-up is no part of this


def decide_plainly(args, say):
    found = in_own_process(args, say)
    return True if found is None else found  # a library that does not survive the call has a bug at least as bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBRARY.so", help="the target library: %s" % FINDING["targets"][0])
    parser.add_argument("against", metavar="AGAINST.so", nargs="?", help="the library of the other side")
    parser.add_argument("--target-option", default="", metavar="TEXT", help="what open() is given")
    parser.add_argument("--against-option", default="", metavar="TEXT", help="likewise, for AGAINST.so")
    parser.add_argument("--runs", type=int, metavar="N", help="tries at most, where one may not show it")
    parser.add_argument("--seconds", type=float, default=20, metavar="S", help="time for all tries (%(default)s)")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    parser.add_argument("--how", default="plain", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer:
        answer(args)
    print(FINDING["headline"])
    print("  " + FINDING["comparison"])
    for line in FINDING["words"]:
        print("  recorded: " + line)
    try:
        there = globals().get("decide", decide_plainly)(args, lambda line: print("  now: " + line))
    except Unusable as error:
        print(error, file=sys.stderr)
        return 2
    print("the bug is there" if there else "the bug is not there")
    return 1 if there else 0


