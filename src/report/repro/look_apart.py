def decide(args, say):
    """One process cannot be both sides: the other one's outputs come from its own."""
    if not args.against or side_of_look() == "against":
        return decide_plainly(args, say)
    with tempfile.TemporaryDirectory() as folder:
        args.other = os.path.join(folder, "other.npz")
        if in_own_process(args, say, "other", "against") is None:
            raise Unusable("without the outputs of %s there is nothing to compare" % args.against)
        return decide_plainly(args, say)


def keep_outputs(args, against):
    """In the process of the other side."""
    outputs = outputs_alone(against, CALLS["against"][0])
    np.savez(args.other, **{"of/" + name: bits for name, bits in outputs.items()})


