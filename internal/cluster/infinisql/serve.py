"""Start InfiniSQL by its manager and stay the parent of the server, which puts itself into
the background, until it ends: MANAGER CONFIGURATION READY. The file READY is made when the
manager has done its work."""
import ctypes
import os
import signal
import subprocess
import sys

PR_SET_CHILD_SUBREAPER = 36  # prctl(2): an orphan below us becomes our child


def end(number, frame=None):
    with open("/proc/self/task/%d/children" % os.getpid()) as children:
        for child in children.read().split():
            os.kill(int(child), number)


manager, configuration, ready = sys.argv[1:]
ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
signal.signal(signal.SIGTERM, end)
if subprocess.call([manager, "-f", configuration]) != 0:
    sys.exit("the manager of InfiniSQL has failed")
# From here on signals are waited for: a handler misses one that comes just before wait(2) waits.
signals = {signal.SIGTERM, signal.SIGCHLD}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
open(ready, "x").close()
while True:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        break
    if signal.sigwait(signals) == signal.SIGTERM:
        end(signal.SIGTERM)
