"""Start Patroni and stay the parent of it and of the PostgreSQL servers that it starts, which
it leaves to whoever adopts orphans: PROGRAM ARGUMENT…. SIGTERM goes to Patroni, which
shuts PostgreSQL down. A Patroni that is there for LINGER seconds after its PostgreSQL has
shut down is ended, as systemd does it: version 3.0.2, which leaves what it does at SIGTERM by
an exception, may hang then. SIGQUIT ends everything at once. While a server runs without
Patroni, this program goes on; SIGUSR1 starts Patroni again."""
import ctypes
import os
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # prctl(2): an orphan below us becomes our child
LINGER = 6
patroni = 0
lone = 0  # for how many seconds Patroni, which is to end, has had no PostgreSQL


def children():
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        return [int(pid) for pid in file.read().split()]


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def start():
    global patroni
    patroni = os.fork()
    if patroni == 0:
        for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        os.execv(sys.argv[1], sys.argv[1:])


def terminate(number, frame):
    if patroni:
        send(patroni, signal.SIGTERM)
        signal.setitimer(signal.ITIMER_REAL, 1, 1)
        return
    for pid in children():
        send(pid, signal.SIGINT)  # the fast shutdown


def look(number, frame):
    global lone
    lone = lone + 1 if patroni and children() == [patroni] else 0
    if lone >= LINGER:
        send(patroni, signal.SIGKILL)


def end(number, frame):
    if patroni:
        send(patroni, signal.SIGKILL)
    deadline = time.monotonic() + 3
    while children() and time.monotonic() < deadline:
        for pid in children():
            send(pid, signal.SIGQUIT)  # the immediate shutdown, in which a server takes its children along
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            pass
        time.sleep(0.02)
    for pid in children():
        send(pid, signal.SIGKILL)
    os._exit(1)


def restart(number, frame):
    if not patroni:
        start()


if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed")
signal.signal(signal.SIGTERM, terminate)
signal.signal(signal.SIGQUIT, end)
signal.signal(signal.SIGUSR1, restart)
signal.signal(signal.SIGALRM, look)
start()
status = 0
while True:
    try:
        pid, result = os.waitpid(-1, 0)
    except ChildProcessError:
        break
    if pid == patroni:
        patroni, status = 0, result
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
