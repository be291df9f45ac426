# The peaks of the hook are those of torch, from the same counts of an allocator that is not here.
import sys
import types

import torch

sys.path.insert(0, "pacer_hook")
import pacer_hook

counts = {
    "allocated_bytes": {"all": {"current": 1, "peak": 7}, "small_pool": {"current": 1, "peak": 3}},
    "reserved_bytes": {"all": {"current": 2, "peak": 9}, "small_pool": {"current": 2, "peak": 4}},
}
torch.cuda.memory.memory_stats_as_nested_dict = lambda device=None: counts
torch.cuda.memory_stats_as_nested_dict = torch.cuda.memory.memory_stats_as_nested_dict
torch.cuda.is_initialized = lambda: True
recorder = types.SimpleNamespace(_torch=torch)
got = pacer_hook.Recorder._peaks(recorder)
want = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
assert got == want == (7, 9), (got, want)
