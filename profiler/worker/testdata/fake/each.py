"""python3 each.py REQUEST...: measures one after the other, into REQUEST.out."""

import json
import sys

from pacer_worker import __main__ as program

for request in sys.argv[1:]:
    with open(request) as f:
        program.measure(json.load(f), request + ".out")
