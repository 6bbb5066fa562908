#!/usr/bin/env python3
"""What a call of a Python target costs beyond the function itself: round trips of a function that does nothing.

    overhead.py [numpy|torch]

Known: the message came before, as in calls that repeat. Fresh: it did not. Echo: the same two processes and socket with
nothing in between. Each is the best of nine medians of 2000, in microseconds; the load of the machine stands beside it.
"""
import os
import statistics
import sys
import tempfile
import time

from driven_host import DrivenHost, dense

ROUNDS, CALLS = 9, 2000
FILE = """
arrays = %r
schema = {"name": "nothing", "inputs": [{"name": "x"}, {"name": "y"}], "outputs": [{"name": "z"}]}
def fused(x, y, out): pass
"""


def best(call):
    medians = []
    for _ in range(ROUNDS):
        times = []
        for number in range(CALLS):
            start = time.perf_counter_ns()
            call(number)
            times.append(time.perf_counter_ns() - start)
        medians.append(statistics.median(times) / 1000)
    return min(medians)


def main():
    kind = sys.argv[1] if len(sys.argv) > 1 else "numpy"
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "nothing.py")
        with open(file, "w") as text:
            text.write(FILE % kind)
        host = DrivenHost(file)
        host.ask(do="open", options="")
        tensors = [host.tensor(name, "f32", [8, 64]) for name in "xyz"]
        spelled = ",".join('{"name":"%s","dtype":2,"shape":[8,64],"stride":%s,"at":%%d}' % (t["name"], dense([8, 64]))
                           for t in tensors)
        inputs, output = spelled.rsplit(",{", 1)
        form = ('{"do":"run","context":1,"op":"nothing","path":"fused","attrs":{},"inputs":[' + inputs + '],"outputs":[{' +
                output + '],"workspace_bytes":0}')

        def ask(text):
            host.channel.send(text)
            host.channel.recv(4096)

        def message(number):
            at = tensors[0]["at"] + 4096 * (number % 4096)
            return (form % (at, at + (64 << 20), at + (128 << 20))).encode()

        ask(message(0))
        known = message(0)
        answers = {"known": best(lambda _: ask(known)), "fresh": best(lambda number: ask(message(number + 1))),
                   "echo": best(lambda _: ask(b'{"do":"nothing"}'))}
        host.end()
    print("%s: %s; load %.1f" % (kind, ", ".join("%s %.1f us" % pair for pair in answers.items()), os.getloadavg()[0]))


if __name__ == "__main__":
    main()
