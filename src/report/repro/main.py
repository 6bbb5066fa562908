# ---- the program ---------------------------------------------------------------------------------------------------


def accused_calls(target, against):
    """The calls of the side that the finding accuses, with the library that makes them."""
    side = FINDING["accused"]
    if side == "against" and CALLS["against"] and against is None:
        raise Unusable("the finding accuses %s: give it as %s" % (FINDING["other"], FILES[1]))
    if side == "against" and CALLS["against"]:
        return [(against, plan) for plan in CALLS["against"]]
    return [(target, plan) for plan in CALLS["target"]]


def variables(args, side):
    """What the environment of a process holds beside this one's: as recorded, and as the command line says."""
    given = args.target_env if side == "target" else args.against_env
    return dict(line.split("=", 1) for line in FINDING["opened"][side]["variables"] + given)


def in_own_process(args, say, how="plain", side=None):
    """True or False as look() says; None when the library ended its process, or did not come back in time. side: whose
    process it is, where one cannot be both."""
    side = side or side_of_look()
    with tempfile.TemporaryDirectory() as folder:
        answer = os.path.join(folder, "answer.json")
        environment = dict(os.environ, **variables(args, side))
        own = (args.against if side == "against" and args.against else args.library).endswith(".py")
        python = environment.get("FUSEDIFF_PYTHON", sys.executable) if own else sys.executable
        command = [python, os.path.abspath(__file__)] + sys.argv[1:]
        command += ["--answer", answer, "--how", how, "--side", side] + (["--other", args.other] if args.other else [])
        limit = args.seconds if FINDING["class"] == "hang" else 3 * args.seconds + 60
        try:
            code = subprocess.run(command, stdout=sys.stderr, timeout=limit, env=environment).returncode
        except OSError as error:
            raise Unusable("cannot start %s: %s" % (python, error.strerror))
        except subprocess.TimeoutExpired:
            must_have_loaded(answer, "it did not come back within %g s" % limit)
            say("the call did not come back within %g s" % limit)
            return None
        if not os.path.exists(answer):
            signals = {s.value: s.name for s in signal.Signals}
            how_ended = signals.get(-code, -code) if code < 0 else "exit code %d" % code
            must_have_loaded(answer, "the process ended: %s" % how_ended)
            say("the library ended the process: %s" % how_ended)
            return None
        with open(answer) as file:
            found = json.load(file)
    for line in found["lines"]:
        say(line)
    if found["unusable"]:
        raise Unusable(found["unusable"])
    return found["there"]


def side_of_look():
    """Whose process makes the calls: the accused side's, unless both sides are compared."""
    accused = FINDING["accused"] == "against" and CALLS["against"] and not FINDING["compares"]
    return "against" if accused and FINDING["apart"] else "target"


def load(args, side):
    """The side's library; while it is being loaded, its path stands in a file beside the answer."""
    target = side == "target"
    path, options = (args.library, args.target_option) if target else (args.against, args.against_option)
    kind = globals().get("PythonFile" if path.endswith(".py") else "Library")
    if kind is None:
        raise Unusable("cannot use %s as a target: %s is needed here" % (
            path, "a shared library" if path.endswith(".py") else "a Python file"))
    with open(args.answer + ".loading", "w") as file:
        file.write(path)
    return kind(path, options)


def libraries(args):
    """The two sides, as far as this process can be both; None for one that it has not."""
    if FINDING["apart"] and args.against:
        return (load(args, "target"), None) if args.side == "target" else (None, load(args, "against"))
    target = load(args, "target")
    if args.against:
        return target, load(args, "against")
    return target, None if FINDING["two_libraries"] or FINDING["apart"] else target


def loaded(args):
    """From here on what becomes of the process is the doing of a call."""
    os.rename(args.answer + ".loading", args.answer + ".loaded")


def must_have_loaded(answer, how_ended):
    """A process that ends before both libraries are loaded says nothing about a call."""
    if os.path.exists(answer + ".loaded"):
        return
    path = "the library"
    if os.path.exists(answer + ".loading"):
        with open(answer + ".loading") as file:
            path = file.read()
    raise Unusable("cannot use %s as a target: while it was loaded %s" % (path, how_ended))


def must_be_a_file(path):
    """Said before anything opens it: opening a pipe would wait for its other end."""
    try:
        regular = stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        raise Unusable("cannot use %s as a target: %s" % (path, getattr(error, "strerror", None) or error))
    if not regular:
        raise Unusable("cannot use %s as a target: it is no regular file" % path)


def answer(args):
    """The part that loads the libraries. Its answer is a file: nothing that a library prints is taken for it."""
    lines, there, unusable = [], None, ""
    np.seterr(all="ignore")
    try:
        target, against = libraries(args)
        loaded(args)
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


def number_from(kind, least, most):
    """An option's type: a number of that kind in least..most."""
    def number(text):
        try:
            value = kind(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            raise argparse.ArgumentTypeError("%r: a number from %g to %g is right" % (text, least, most))
        return value
    return number


def variable(text):
    if text.find("=") < 1:
        raise argparse.ArgumentTypeError("%r is no NAME=VALUE" % text)
    return text


def options():
    opened = FINDING["opened"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar=FILES[0], help="the target: %s" % FINDING["targets"][0])
    parser.add_argument("against", metavar=FILES[1], nargs="?", help="the other side")
    for side, file in zip(("target", "against"), FILES):
        parser.add_argument("--%s-option" % side, default=opened[side]["options"], metavar="TEXT",
                            help="what open() of %s is given (as recorded: %s)" % (
                                file, opened[side]["options"].replace("%", "%%") or "nothing"))
        parser.add_argument("--%s-env" % side, action="append", default=[], type=variable, metavar="NAME=VALUE",
                            help="a variable of its process beside those recorded (%s); may be repeated" % (
                                " ".join(opened[side]["variables"]).replace("%", "%%") or "none"))
    parser.add_argument("--runs", type=number_from(int, 1, 10**9), metavar="N",
                        help="tries at most, where one may not show it")
    parser.add_argument("--seconds", type=number_from(float, 0.001, 10**6), default=20, metavar="S",
                        help="time for all tries (%(default)s)")
    parser.add_argument("--answer", help=argparse.SUPPRESS)
    parser.add_argument("--how", default="plain", help=argparse.SUPPRESS)
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--other", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if FINDING["apart"] and not FINDING["two_libraries"] and side_of_look() == "against":
        args.against = args.against or args.library
    return args


def say_opened(args, say):
    """What the two sides are given, where it is anything."""
    for side, file, given in (("target", args.library, args.target_option), ("against", args.against,
                                                                             args.against_option)):
        words = ["--%s-option %s" % (side, given)] if given else []
        words += ["--%s-env %s=%s" % (side, name, value) for name, value in variables(args, side).items()]
        if words and file:
            say("opened with: " + " ".join(words))


def judge(args):
    for path in [args.library] + ([args.against] if args.against else []):
        must_be_a_file(path)
    print(FINDING["headline"])
    print("  " + FINDING["comparison"])
    for line in FINDING["words"]:
        print("  recorded: " + line)
    say_opened(args, lambda line: print("  " + line))
    there = globals().get("decide", decide_plainly)(args, lambda line: print("  now: " + line))
    print("the bug is there" if there else "the bug is not there")
    return 1 if there else 0


def main():
    for name in ("stdout", "stderr"):  # closed, it says nothing; the exit code does
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))
        getattr(sys, name).reconfigure(errors="backslashreplace")
    args = options()
    if args.answer:
        answer(args)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = judge(args)
        sys.stdout.flush()
        return code
    except Unusable as error:
        return unable(error, 2)
    except KeyboardInterrupt:
        return unable("interrupted", 130)
    except Exception as error:  # nothing but an answer may end in 1
        return unable("this script cannot go on: %s: %s" % (type(error).__name__, error), 2)


def unable(why, code):
    """One line, where it can be written still, and nothing more from here on."""
    for stream, text in ((sys.stdout, ""), (sys.stderr, "%s\n" % why)):
        try:
            stream.write(text)
            stream.flush()
        except OSError:  # what is left in it would be tried again at the end
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return code


