# ---- what is looked for: how much memory the call asks for ---------------------------------------------------------


def look(target, against, say, args):
    for library, plan in accused_calls(target, against)[:1]:
        call = Call(library, library.open(), plan)
        tensors = sum(memory.size for memory in call.all_memory())
        status = library.table.workspace_bytes(call.context, ctypes.byref(call.c), ctypes.byref(call.asked))
        if status != OK:
            raise Unusable("workspace_bytes() ended in " + library.why(status))
        say("asks for %d bytes of workspace beside tensors of %d bytes; the cap was %d" % (
            call.asked.value, tensors, FINDING["memory_cap"]))
        return call.asked.value + tensors > FINDING["memory_cap"]


