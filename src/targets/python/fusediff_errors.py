"""What an exception of a Python target means: a status, one line of words, and the traceback of the user's own frames."""
import os
import sys
import traceback

OK, UNSUPPORTED, REJECTED, FAILED = range(4)
MOST_WORDS = 900
OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Refused(Exception):
    """The file is no target; one line says what would be right."""


class Misused(Exception):
    """A function breaks a rule of Python targets: its author's mistake, in one line."""


def one_line(text, most=MOST_WORDS):
    """For JSON too: no half of a surrogate pair."""
    return " ".join(text.encode("utf-8", "backslashreplace").decode().split())[:most]


def spelled(error):
    try:
        text = str(error)
    except Exception:
        text = "(it has no text: its __str__ fails)"
    return text if isinstance(error, Misused) else "%s%s" % (type(error).__name__, ": " + text if text else "")


def status_of(error, arrays):
    if isinstance(error, NotImplementedError) or arrays.is_unsupported(error):
        return UNSUPPORTED
    return REJECTED if isinstance(error, ValueError) else FAILED


def line_in(error, path):
    """The last line of the file that the error came through, 0 where it came through none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return lines[-1] if lines else 0


def place_of(error, path):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    return " (%s:%d in %s)" % (os.path.basename(path), frames[-1].lineno, frames[-1].name) if frames else ""


def print_trace(error):
    """Without the frames that are ours, and not at all where there are no others."""
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename.startswith(OURS):
        trace = trace.tb_next
    if trace:
        print("".join(traceback.format_exception(type(error), error, trace)), end="", file=sys.stderr, flush=True)
