# ---- what is looked for: how much memory the call asks for ---------------------------------------------------------


def look(target, against, say, args):
    for library, plan in accused_calls(target, against)[:1]:
        call = Call(library, library.open(), plan)
        tensors = sum(memory.size for memory in call.all_memory())
        status, asked = library.workspace_bytes(call.context, call.prepared) if library.asks_workspace else (OK, 0)
        if status != OK:
            raise Unusable("workspace_bytes() ended in " + library.why(status))
        say("asks for %d bytes of workspace beside tensors of %d bytes; the cap was %d" % (
            asked, tensors, FINDING["memory_cap"]))
        return asked + tensors > FINDING["memory_cap"]


