"""Start Patroni and stay the parent of it and of the PostgreSQL servers that it starts, which
it leaves to whoever adopts orphans: PROGRAM ARGUMENT…. SIGTERM goes to Patroni, which
shuts PostgreSQL down. A Patroni that is there for LINGER seconds after its PostgreSQL has
shut down is ended, as systemd does it: version 3.0.2, which leaves what it does at SIGTERM by
an exception, may hang then. SIGQUIT ends everything at once. While a server runs without
Patroni, this program goes on; SIGUSR1 starts Patroni again.

The signals are blocked and waited for. One that has a handler is lost until the next one where
it arrives just before waitpid(2) begins to wait, as it does right after SIGCONT, when that
call is made again."""
import ctypes
import os
import signal
import sys
import time

PR_SET_CHILD_SUBREAPER = 36  # prctl(2): an orphan below us becomes our child
SIGNALS = {signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGCHLD}
LINGER = 6


def children():
    with open("/proc/self/task/%d/children" % os.getpid()) as file:
        return [int(pid) for pid in file.read().split()]


def send(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def start():
    patroni = os.fork()
    if patroni == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        os.execv(sys.argv[1], sys.argv[1:])
    return patroni


def terminate(patroni):
    if patroni:
        send(patroni, signal.SIGTERM)
        return
    for pid in children():
        send(pid, signal.SIGINT)  # the fast shutdown


def end(patroni):
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


def ended():
    """What has ended, with its status; nothing more once no child is left."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        yield pid, status


if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
    sys.exit("prctl(PR_SET_CHILD_SUBREAPER) failed")
signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
patroni = start()
status = 0
ending = False
lone = None  # since when Patroni, which is to end, has had no PostgreSQL
while True:
    try:
        for pid, result in ended():
            if pid == patroni:
                patroni, status = 0, result
    except ChildProcessError:
        break
    if not ending or not patroni or children() != [patroni]:
        lone = None
    elif lone is None:
        lone = time.monotonic()
    elif time.monotonic() - lone >= LINGER:
        send(patroni, signal.SIGKILL)
    came = signal.sigtimedwait(SIGNALS, 1) if ending else signal.sigwaitinfo(SIGNALS)
    number = came.si_signo if came else 0
    if number == signal.SIGTERM:
        ending = True
        terminate(patroni)
    elif number == signal.SIGQUIT:
        end(patroni)
    elif number == signal.SIGUSR1 and not patroni:
        ending = False
        patroni = start()
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)
