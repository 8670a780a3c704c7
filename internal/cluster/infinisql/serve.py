"""Start InfiniSQL by its manager and stay the parent of the server, which puts itself into
the background, until it ends: MANAGER CONFIGURATION READY. The file READY is made when the
manager has done its work."""
import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36  # prctl(2): an orphan below us becomes our child


def end(number, frame):
    with open("/proc/self/task/%d/children" % os.getpid()) as children:
        for child in children.read().split():
            os.kill(int(child), number)


manager, configuration, ready = sys.argv[1:]
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
signal.signal(signal.SIGTERM, end)
if subprocess.call([manager, "-f", configuration]) != 0:
    sys.exit("the manager of InfiniSQL has failed")
open(ready, "x").close()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
