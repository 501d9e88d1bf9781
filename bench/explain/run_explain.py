#!/usr/bin/env python3
"""run_explain.py SNUG SNAPSHOT [flags]: the seconds and the most memory that `snug explain SNAPSHOT [flags]` takes."""

import resource
import subprocess
import sys
import time

snug, snapshot, *flags = sys.argv[1:]
begin = time.monotonic()
subprocess.run([snug, "explain", snapshot, *flags], stdout=subprocess.DEVNULL, check=True)
seconds = time.monotonic() - begin
kib = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(f"explain {flags[0] if flags else ''}: {seconds:.2f} s, {kib / 1024:.1f} MiB")
