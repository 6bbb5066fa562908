# ---- calls that share a context ------------------------------------------------------------------------------------


def turns(seed):
    """Who calls what, a list for each thread; numbers are positions in CALLS["target"], 0 is the case itself."""
    kind, mates = EXPERIMENT["kind"], len(CALLS["target"]) - 1
    if kind == "history":  # the earlier calls, then the case
        return [list(range(1, mates + 1)) + [0]]
    if kind == "repeat":  # the case again and again, the others in turn between
        between = [[1 + i % mates] if mates else [] for i in range(EXPERIMENT["count"] - 1)]
        return [[0] + [number for mate in between for number in mate + [0]]]
    draw = random.Random(seed)  # threads: the case in half of the turns, mates in the others
    return [[0 if not mates or (r + t + draw.randrange(2)) % 2 == 0 else draw.randrange(1, mates + 1)
             for r in range(EXPERIMENT["rounds"])] for t in range(EXPERIMENT["count"])]


class Tally:
    """What calls of one kind gave: how many, and those that gave other bytes than alone."""

    def __init__(self):
        self.calls, self.wrong = 0, []


def together(library, seed, seconds, alone, sleepy=False):
    """Threads that start at once and make their calls back to back on one context (or one each, where the schema says
    so), each with memory of its own, again and again for some time; one thread makes them once. A Tally a call.
    sleepy: every other thread sleeps before each call: when it wakes it interrupts another in the middle of one."""
    orders, plans = turns(seed), CALLS["target"]
    opened = [library.open() for _ in (orders if EXPERIMENT["context_each"] else orders[:1])]
    contexts = opened if len(opened) == len(orders) else opened * len(orders)
    own = [{n: Call(library, context, plans[n]) for n in set(order)} for order, context in zip(orders, contexts)]
    tallies = [[Tally() for _ in plans] for _ in orders]
    start, ends = threading.Barrier(len(orders)), time.monotonic() + seconds

    def work(number, order, calls, tally):
        start.wait()
        rounds = 0
        while rounds == 0 or (len(orders) > 1 and time.monotonic() < ends):
            for n in order:
                if sleepy and number % 2:
                    time.sleep(random.random() * 1e-4)
                calls[n].run() if rounds == 0 else calls[n].again()
                tally[n].calls += 1
                if calls[n].status != OK or calls[n].gave_other_bytes(alone[n]):
                    tally[n].wrong.append((calls[n].status, calls[n].outputs()))
            rounds += 1

    threads = [threading.Thread(target=work, args=each) for each in zip(range(len(orders)), orders, own, tallies)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for calls in own:
        for call in calls.values():
            call.free()
    for context in opened:
        library.close(context)
    total = [Tally() for _ in plans]
    for tally in tallies:
        for n, one in enumerate(tally):
            total[n].calls += one.calls
            total[n].wrong += one.wrong
    return total


