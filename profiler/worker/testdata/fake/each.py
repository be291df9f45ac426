"""python3 each.py REQUEST...: measures one after the other, into REQUEST.out.

Time is not real here: only sleeping takes any, and exactly what it says.
"""

import json
import sys
import time

from pacer_worker import __main__ as program

now = 100.0


def sleep(seconds):
    global now
    now += seconds


time.sleep, time.time, time.perf_counter = sleep, lambda: now, lambda: now

for request in sys.argv[1:]:
    with open(request) as f:
        program.measure(json.load(f), request + ".out")
