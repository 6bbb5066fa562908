# ---- what is looked for: outputs that differ from the other side's -------------------------------------------------


def look(target, against, say, args):
    if args.how == "other":
        return keep_outputs(args, against)
    mine = outputs_alone(target, CALLS["target"][0])
    theirs = other_side(args, against, say)
    facts = {fact["output"]: fact for fact in FINDING["differences"]}
    for name, fact in facts.items():
        say_difference(say, fact, mine, theirs)
    for flip in FINDING["flips"]:
        say_flip(say, flip, mine, theirs)
    name = FINDING["output"]
    accused = theirs if FINDING["accused"] == "against" else mine
    return differs(say, target, facts[name], accused[name], mine[name], theirs[name])


def other_side(args, against, say):
    if args.other:  # they came from a process of its own
        with np.load(args.other) as stored:
            return {name[len("of/"):]: stored[name] for name in stored.files}
    if against:
        return outputs_alone(against, CALLS["against"][0])
    if FINDING["accused"] == "against":
        accused_calls(None, None)  # says that the other side is needed
    say("compared with the recorded outputs of %s (give %s to run it)" % (FINDING["other"], FILES[1]))
    known = [t["name"] for t in CALLS["target"][0]["outputs"] if "against/" + t["name"] in RECORDED_OUTPUTS]
    return {name: unpack("against/" + name, OUTPUTS, "outputs.safetensors") for name in known}


def truth_of(name):
    known = "truth/" + name in RECORDED_OUTPUTS
    return values("f64", unpack("truth/" + name, OUTPUTS, "outputs.safetensors")) if known else None


def say_difference(say, fact, mine, theirs):
    name, dtype = fact["output"], fact["dtype"]
    if name not in mine or name not in theirs:
        return
    a, b = mine[name], theirs[name]
    where = np.flatnonzero(other_bits(dtype, a, b))
    stage = "" if fact["stage"] is None else "stage %d, " % fact["stage"]
    if len(where) == 0:
        return say("%s%s (%s): all %d elements agree" % (stage, name, dtype, len(a)))
    apart = ulps(dtype, a, b)
    worst = int(where[np.argmax(apart[where])])
    say("%s%s (%s): %d of %d elements differ, at most %s" % (
        stage, name, dtype, len(where), len(a), ulp_words(int(apart[worst]))))
    for label, at in [("first", int(where[0]))] + ([("worst", worst)] if worst != where[0] else []):
        say("  %s at index %d: %s %s, %s %s" % (
            label, at, NAMES[0], show(dtype, a[at]), NAMES[1], show(dtype, b[at])))
    if truth_of(name) is not None and is_float(dtype):
        say("  largest error against the f64 truth: %s %.6g, %s %.6g" % (
            NAMES[0], worst_error(dtype, a, truth_of(name)), NAMES[1], worst_error(dtype, b, truth_of(name))))


def say_flip(say, flip, mine, theirs):
    if flip["pick"] not in mine or flip["pick"] not in theirs:
        return
    shape = next(t["shape"] for t in CALLS["target"][0]["outputs"] if t["name"] == flip["pick"])
    at = flip["row"] * shape[-1] + flip["slot"]
    picks = [int(side[flip["pick"]][at]) for side in (mine, theirs)]
    say("row %d, slot %d of %s: %s picks %d, %s picks %d" % (
        flip["row"], flip["slot"], flip["pick"], NAMES[0], picks[0], NAMES[1], picks[1]))
    for t in CALLS["target"][0]["outputs"]:  # the numbers that led to the pick, at both picks
        name, width = t["name"], t["shape"][-1] if t["shape"] else 0
        ranks = t["shape"][:-1] == shape[:-1] and width > max(flip["picked"]) and width > shape[-1]
        if not ranks:
            continue
        for side, outputs in zip(NAMES, (mine, theirs)):
            if name in outputs:
                row = outputs[name][flip["row"] * width:]
                shown = ", ".join("%d: %s" % (p, show(t["dtype"], row[p])) for p in flip["picked"])
                say("  %s, %s: %s" % (name, side, shown))


def worst_error(dtype, bits, truth, where=True):
    """The largest error of these elements; infinite where one of the two is not finite."""
    found = values(dtype, bits).astype("f8")
    error = np.where((found == truth) | (np.isnan(found) & np.isnan(truth)), 0, abs(found - truth))
    return float(np.max(np.where(np.isnan(error), np.inf, error), initial=0, where=where))


def allowed_ulps(library, output, dtype):
    """What the library's own schema lets two paths differ by."""
    for op in library.schema()["operators"]:
        rules = [o for o in op.get("outputs", []) if op["name"] == CALLS["target"][0]["op"] and o["name"] == output]
        agree = rules[0].get("agree") if rules else None
        if isinstance(agree, dict):
            return agree["ulp"].get(dtype, 0) if isinstance(agree["ulp"], dict) else agree["ulp"]
    return 0


def differs(say, target, fact, accused, a, b):
    """Is the difference that was found still there?"""
    name, dtype, kind = fact["output"], fact["dtype"], FINDING["class"]
    other = other_bits(dtype, a, b)
    if kind in ("flip", "wrong_pick"):  # in the rows where it was; elsewhere picks may differ by right
        recorded = [unpack(side + name, OUTPUTS, "outputs.safetensors") for side in ("target/", "against/")]
        return bool(np.any(other & other_bits(dtype, *recorded)))
    if kind in ("zero_sign", "nan_bits") or not is_float(dtype):
        return bool(np.any(other))
    if kind == "non_finite":
        x, y = values(dtype, a), values(dtype, b)
        return bool(np.any(other & ~(np.isfinite(x) & np.isfinite(y))))
    if kind == "rounding":
        least = max(allowed_ulps(target, name, dtype) + 1, (fact["max_ulp"] + 1) // 2)
        say("%s: there while at least %d ULP apart (recorded: %s)" % (name, least, ulp_words(fact["max_ulp"])))
        return bool(np.any(other & (ulps(dtype, a, b) >= np.uint64(least))))
    # Damage: an error of the size that was recorded. Where its bound is known, nearer to the recorded error than to
    # the bound (on a scale of powers); otherwise at least half of it.
    truth = truth_of(name)
    if truth is None:
        truth, share = values(dtype, b).astype("f8"), 0.5
    else:
        share = min(max((fact["bound"] / fact["error"]) ** 0.5, 0.1), 1) if fact["bound"] and fact["error"] else 0.5
    sides = [unpack(side + name, OUTPUTS, "outputs.safetensors") for side in ("target/", "against/")]
    recorded = worst_error(dtype, sides[FINDING["accused"] == "against"], truth, other_bits(dtype, *sides))
    error = worst_error(dtype, accused, truth, other)
    say("%s: error %.6g; there from %.6g on (recorded: %.6g)" % (name, error, share * recorded, recorded))
    return error >= share * recorded and error > 0


