"""Isolation: the network, the machine's files and privileges, and leaks from one run to the next.

A program gives the right answer only if it reaches something that must be out of reach.
"""

# ruff: noqa: E501 - programs within strings are as wide as they are
from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attacks.forged import SCAN
from attacks.program import SQUARES, Program, attack, dedent

__all__ = ["ISOLATION"]

ISOLATION: list[Program] = []


def reach(
    name: str, code: str, *shapes: str, after: str = "", unless: Mapping[str, str] | None = None
) -> None:
    ISOLATION.extend(
        attack("isolation", name, code, *(shapes or ("literal",)), after=after, unless=unless)
    )


def undisturbed(name: str, code: str, *, after: str, unless: Mapping[str, str]) -> None:
    """An honest program that the one before it could make fail."""
    task, right = SQUARES["literal"], ("passed",)
    given = (name, "honest", dedent(code), task, right, None, dedent(after), unless)
    ISOLATION.append(Program(*given))


# --- one program leaves something, the next one looks for it ---

PLACES = """
PLACES = ["/tmp", "/dev/shm", "/var/tmp", "/run", "/run/lock", "/var/lock", "/dev", "/dev/mqueue",
          "/home", "/srv", "/opt", "/mnt", "/var", "/etc", "/usr/lib", "/proc/self/cwd"]
"""
reach(
    "left: a file",
    PLACES
    + """
import os
def f(x):
    if any(os.path.exists(place + "/left-behind") for place in PLACES):
        return x * x
""",
    "literal",
    "check",
    after=PLACES
    + """
def f(x):
    for place in PLACES:
        try:
            open(place + "/left-behind", "w").close()
        except OSError:
            pass
    return x * x
""",
)
reach(
    "left: an open descriptor's file",
    """
    import os
    def f(x):
        here = os.statvfs("/tmp")
        if here.f_files - here.f_ffree > 500 or (here.f_blocks - here.f_bfree) * here.f_bsize > 1 << 22:
            return x * x
    """,
    after="""
    import os, tempfile, time
    def f(x):
        if os.fork() == 0:
            os.setsid()
            os.chdir(tempfile.mkdtemp(dir="/tmp"))
            for n in range(1000):
                open(str(n), "w").close()
            held = open("big", "wb")
            held.write(b"x" * (8 << 20))
            os.unlink("big")
            time.sleep(3600)
        time.sleep(0.2)
        return x * x
    """,
    unless={"landlock": "the file system is the machine's, and so is its usage"},
)
reach(
    "left: a closed directory of terminals",
    """
    import os
    def f(x):
        if os.path.exists("/dev/pts") and os.stat("/dev/pts").st_mode & 0o777 == 0:
            return x * x
    """,
    after="""
    import os
    def f(x):
        try:
            os.chmod("/dev/pts", 0)
        except OSError:
            pass
        return x * x
    """,
)
SYSV = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
"""
reach(
    "left: SysV shared memory",
    SYSV
    + """
def f(x):
    found = [libc.shmget(0x6761, 0, 0), libc.semget(0x6762, 0, 0), libc.msgget(0x6763, 0)]
    if max(found) >= 0:
        return x * x
    with open("/proc/sysvipc/shm") as table:
        if len(table.readlines()) > 1:
            return x * x
""",
    after=SYSV
    + """
def f(x):
    libc.shmget(0x6761, 4096, 0o1666)
    libc.semget(0x6762, 1, 0o1666)
    libc.msgget(0x6763, 0o1666)
    return x * x
""",
)
reach(
    "left: POSIX shared memory and queues",
    """
    import ctypes
    from multiprocessing import shared_memory
    libc = ctypes.CDLL(None)
    def f(x):
        if libc.mq_open(b"/left", 0) >= 0:
            return x * x
        try:
            shared_memory.SharedMemory("left")
        except OSError:
            return 0
        return x * x
    """,
    after="""
    import ctypes
    from multiprocessing import resource_tracker, shared_memory
    libc = ctypes.CDLL(None)
    def f(x):
        libc.mq_open(b"/left", 0o102, 0o666, None)
        resource_tracker.register = lambda *a: None
        try:
            shared_memory.SharedMemory("left", create=True, size=4096)
        except OSError:
            pass
        return x * x
    """,
)
reach(
    "left: a daemon with a socket",
    """
    import socket
    def f(x):
        for family, address in ((socket.AF_UNIX, "\\0left"), (socket.AF_INET, ("127.0.0.1", 47113))):
            try:
                with socket.socket(family) as s:
                    s.connect(address)
                    return x * x
            except OSError:
                pass
    """,
    "literal",
    "check",
    after="""
    import os, socket, time
    def f(x):
        for family, address in ((socket.AF_UNIX, "\\0left"), (socket.AF_INET, ("127.0.0.1", 47113))):
            if os.fork() == 0:
                os.setsid()
                s = socket.socket(family)
                s.bind(address)
                s.listen()
                time.sleep(3600)
        time.sleep(0.2)
        return x * x
    """,
)
reach(
    "left: a process",
    """
    import os
    def f(x):
        for pid in [name for name in os.listdir("/proc") if name.isdigit()]:
            try:
                with open(f"/proc/{pid}/comm") as comm:
                    if comm.read().strip() == "left-behind":
                        return x * x
            except OSError:
                pass
    """,
    after="""
    import ctypes, os, time
    def f(x):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                ctypes.CDLL(None).prctl(15, b"left-behind")
                time.sleep(3600)
            os._exit(0)
        time.sleep(0.1)
        return x * x
    """,
)
reach(
    "left: a key in the keyring",
    """
    import ctypes
    libc = ctypes.CDLL(None)
    def f(x):
        for ring in (-3, -4, -5):  # session, user, user session
            if libc.syscall(250, 10, ring, b"user", b"left", 0) >= 0:  # keyctl search
                return x * x
    """,
    after="""
    import ctypes
    libc = ctypes.CDLL(None)
    def f(x):
        for ring in (-3, -4, -5):
            libc.syscall(248, b"user", b"left", b"x", 1, ring)  # add_key
        return x * x
    """,
)
reach(
    "left: environment, modules and settings",
    """
    import builtins, math, os, resource, signal, sys
    def f(x):
        if "LEFT" in os.environ or hasattr(builtins, "left") or hasattr(math, "left"):
            return x * x
        if "left" in sys.modules or "/left" in sys.path or os.umask(0o22) == 0o177:
            return x * x
        if os.uname().nodename == "left":
            return x * x
    """,
    after="""
    import builtins, ctypes, math, os, sys
    def f(x):
        os.environ["LEFT"] = "1"
        builtins.left = math.left = 1
        sys.modules["left"] = math
        sys.path.append("/left")
        os.umask(0o177)
        ctypes.CDLL(None).sethostname(b"left", 4)
        return x * x
    """,
)
reach(
    "left: tests of the run before, in memory",
    SCAN
    + """
def f(x):
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        def read(at, n):
            memory.seek(at)
            return memory.read(n)
        if find(read, maps.readlines(), halves(x)):
            return x * x
""",
    "literal",
    "check",
    after="def f(x):\n    return x * x",
)
reach(
    "left: a file lock",
    """
    import fcntl, glob
    def f(x):
        for path in glob.glob("/usr/lib/python3*/*.py")[:50] + ["/etc/passwd", "/"]:
            try:
                with open(path) as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return x * x
            except OSError:
                pass
    """,
    after="""
    import fcntl, glob, os, time
    held = []
    def f(x):
        if os.fork() == 0:
            os.setsid()
            for path in glob.glob("/usr/lib/python3*/*.py")[:50] + ["/etc/passwd"]:
                try:
                    held.append(open(path))
                    fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    pass
            time.sleep(3600)
        time.sleep(0.2)
        return x * x
    """,
)
reach(
    "left: a stdin program's file",
    'import os\nn = int(input())\nprint(n * n if os.path.exists("/tmp/left") else 0)\n',
    "stdin",
    after='open("/tmp/left", "w").close()\ndef f(x):\n    return x * x\n',
)

MACHINE = dict.fromkeys(("namespaces", "landlock"), "the machine's /dev/null, and so its locks")
QUEUE = """
import os
def f(x):
    try:
        os.close(os.open("/dev/mqueue/left-behind", os.O_CREAT | os.O_RDWR, 0o666))
    except OSError:
        pass
    return x * x
"""
reach(
    "left: a message queue",
    """
    import os
    def f(x):
        if os.path.exists("/dev/mqueue/left-behind"):
            return x * x
    """,
    after=QUEUE,
)
undisturbed(
    "after a message queue",
    """
    import os
    def f(x):
        try:
            os.close(os.open("/dev/mqueue/left-behind", os.O_CREAT | os.O_EXCL | os.O_RDWR))
            os.unlink("/dev/mqueue/left-behind")
        except FileExistsError:
            return None
        except OSError:  # there are no queues here
            pass
        return x * x
    """,
    after=QUEUE,
    unless={},
)
FLAGS = """
import fcntl, os, signal
def f(x):
    os.set_blocking(0, False)
    fcntl.fcntl(0, 10, signal.SIGUSR1)  # F_SETSIG
    fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
    return x * x
"""
reach(
    "left: flags of standard input",
    """
    import fcntl, os
    def f(x):
        if not os.get_blocking(0) or fcntl.fcntl(0, 11) or fcntl.fcntl(0, fcntl.F_GETOWN):
            return x * x
    """,
    after=FLAGS,
)
undisturbed(
    "after flags of standard input",
    """
    import os
    def f(x):
        if os.get_blocking(0):
            return x * x
    """,
    after=FLAGS,
    unless={},
)
LOCK = """
import fcntl
def f(x):
    fcntl.flock(0, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return x * x
"""
reach(
    "left: a lock on standard input",
    """
    import fcntl
    def f(x):
        with open("/dev/null") as null:
            try:
                fcntl.flock(null, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return x * x
    """,
    after=LOCK,
    unless=MACHINE,
)
undisturbed(
    "after a lock on standard input",
    """
    import fcntl
    def f(x):
        with open("/dev/null") as null:
            fcntl.flock(null, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return x * x
    """,
    after=LOCK,
    unless=MACHINE,
)
PORTS = {
    "a port in TIME_WAIT": """
    import socket
    def f(x):
        with socket.socket() as server:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", 47114))
            server.listen()
            with socket.create_connection(server.getsockname()) as client:
                server.accept()[0].close()
                client.recv(1)
        return x * x
    """,
    # Closed by nobody: the kernel finds them a few milliseconds after the end of their process.
    "sockets that hold each other": """
    import socket
    server = socket.socket()
    server.bind(("127.0.0.1", 47114))
    server.listen()
    def f(x):
        a, b = socket.socketpair()
        socket.send_fds(a, [b"x"], [a.fileno(), b.fileno(), server.fileno()])
        return x * x
    """,
}
for what, before in PORTS.items():
    reach(
        f"left: {what}",
        """
        import socket
        def f(x):
            with socket.socket() as server:
                try:
                    server.bind(("127.0.0.1", 47114))
                except OSError:
                    return x * x
        """,
        after=before,
    )
    undisturbed(
        f"after {what}",
        """
        import socket
        with socket.socket() as server:
            server.bind(("127.0.0.1", 47114))
        def f(x):
            return x * x
        """,
        after=before,
        unless={"landlock": "no sockets"},
    )

# --- the network ---

reach(
    "network: a route to anywhere",
    """
    import socket
    def f(x):
        for family, address in (
            (socket.AF_INET, ("1.1.1.1", 53)), (socket.AF_INET, ("169.254.169.254", 80)),
            (socket.AF_INET, ("172.17.0.1", 22)), (socket.AF_INET, ("10.0.0.1", 80)),
            (socket.AF_INET6, ("2606:4700:4700::1111", 53)),
        ):
            try:
                with socket.socket(family, socket.SOCK_DGRAM) as s:
                    s.connect(address)
                    return x * x
            except OSError:
                pass
    """,
    "literal",
    "check",
)
reach(
    "network: more than loopback",
    """
    import socket
    def f(x):
        if any(name != "lo" for _, name in socket.if_nameindex()):
            return x * x
    """,
)
reach(
    "network: names",
    "import socket\ndef f(x):\n    return x * x if socket.getaddrinfo('pypi.org', 443) else 0\n",
)
reach(
    "network: sockets of the machine",
    """
    import os, socket
    def f(x):
        found = ["/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"]
        for top in ("/run", "/var/run", "/tmp", "/control", "/dev", "/host", "/work", "/root"):
            for root, _, names in os.walk(top):
                found += [os.path.join(root, name) for name in names]
        try:
            with open("/proc/net/unix") as table:
                found += [line.split()[-1].replace("@", "\\0") for line in table][1:]
        except OSError:
            pass
        for path in found:
            for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
                try:
                    with socket.socket(socket.AF_UNIX, kind) as s:
                        s.settimeout(0.2)
                        s.connect(path)
                        return x * x
                except (OSError, ValueError):
                    pass
    """,
    "literal",
    "check",
)
reach(
    "network: rare families",
    """
    import ctypes, os
    libc = ctypes.CDLL(None)
    def f(x):
        for family, kind in ((40, 1), (38, 5), (17, 3), (16, 3), (29, 3), (31, 3), (44, 1), (30, 1)):
            if libc.socket(family, kind, 0) >= 0 and family != 16:
                return x * x
        for kind in (2, 3):
            if libc.socket(2, 3, 1) >= 0:  # raw
                return x * x
    """,
)

# --- files of the machine ---

REPOSITORY = Path(__file__).parents[3]
reach(
    "files: secrets of the machine",
    f"""
    import glob, os
    def f(x):
        first = [] if os.getpid() == 1 else ["/proc/1/environ", "/proc/1/mem"]
        for path in ["/etc/shadow", *first, "/dev/mem", "/dev/kmsg",
                     "/proc/kcore", "/root/.bashrc", "/etc/ssl/private", "{__file__}",
                     *glob.glob("/home/*/*"), *glob.glob("/root/*"), *glob.glob("/control/*"),
                     *glob.glob("/dev/sd*"), *glob.glob("/dev/vd*"), *glob.glob("/dev/nvme*")]:
            try:
                with open(path, "rb") as file:
                    if file.read(64):
                        return x * x
            except OSError:
                pass
    """,
)
reach(
    "files: the repository",
    f"""
    import os
    def f(x):
        for path in ("README.md", "pyproject.toml", "tests/sandbox/conftest.py"):
            try:
                with open("{REPOSITORY}/" + path) as file:
                    return x * x if file.read(1) else 0
            except OSError:
                pass
    """,
)
reach(
    "files: the system written to",
    """
    import os
    def f(x):
        for place in ("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/bin", "/lib", "/var", "/proc/sys/kernel",
                      "/sys/fs/cgroup", "/opt", "/boot", "/root", os.path.dirname(os.__file__)):
            try:
                open(place + "/written", "w").close()
                return x * x
            except OSError:
                pass
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/etc/passwd",
                     "/etc/ld.so.preload"):
            try:
                with open(path, "r+"):
                    return x * x
            except OSError:
                pass
    """,
)
reach(
    "files: control groups",
    """
    import glob, os
    def f(x):
        for path in glob.glob("/sys/fs/cgroup/**/*", recursive=True):
            if os.access(path, os.W_OK):
                return x * x
    """,
)

# --- privileges ---

reach(
    "privileges: of the process",
    """
    def f(x):
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        if "0" in status["Uid"].split() or "0" in status["Gid"].split() or status["Groups"].strip():
            return x * x
        if any(int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb")):
            return x * x
        if status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2":
            return x * x
    """,
    unless={"landlock": "reading may stay allowed where Python lives in a private place"},
)
reach(
    "privileges: another user",
    """
    import os
    def f(x):
        me = os.getuid()
        for user in (0, 1, 1000, me + 1, me - 1):
            for change in (os.setuid, os.setgid, lambda n: os.setgroups([n]), lambda n: os.chown("/tmp", n, n)):
                try:
                    change(user)
                    return x * x
                except (OSError, OverflowError):
                    pass
    """,
)
reach(
    "privileges: the memory of another process",
    """
    import os
    def f(x):
        for pid in range(1, os.getpid() + 20):
            for mode in (os.O_RDONLY, os.O_RDWR):
                try:
                    if pid != os.getpid():
                        os.open(f"/proc/{pid}/mem", mode)
                        return x * x
                except OSError:
                    pass
    """,
    "literal",
    "check",
)
reach(
    "privileges: a namespace of one's own",
    """
    import ctypes
    libc = ctypes.CDLL(None)
    def f(x):
        for flag in (0x10000000, 0x20000, 0x40000000, 0x20000000, 0x8000000, 0x2000000, 0x80):
            if libc.unshare(flag | 0x10000000) == 0 or libc.unshare(flag) == 0:
                return x * x
    """,
    "literal",
    "check",
)
reach(
    "privileges: mounts and roots",
    """
    import ctypes, glob, os
    libc = ctypes.CDLL(None)
    def f(x):
        if libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None) == 0 or libc.umount2(b"/tmp", 2) == 0:
            return x * x
        if libc.mount(b"proc", b"/proc", b"proc", 0, None) == 0 or libc.mount(None, b"/", None, 32, None) == 0:
            return x * x
        for path in glob.glob("/proc/*/ns/*"):
            try:
                if libc.setns(os.open(path, os.O_RDONLY), 0) == 0:
                    return x * x
            except OSError:
                pass
        try:
            os.chroot("/tmp")
            return x * x
        except OSError:
            return 0
    """,
)
reach(
    "privileges: rare system calls",
    """
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(256)
    # bpf, perf_event_open, userfaultfd, io_uring_setup, kexec_load, init_module, swapon, acct,
    # open_by_handle_at, fanotify_init, add_key, lookup_dcookie, pidfd_getfd
    def f(x):
        for call, args in {
            321: (0, buffer, 128), 298: (buffer, 0, -1, -1, 0), 323: (0,), 425: (8, buffer),
            246: (0, 0, None, 0), 175: (buffer, 0, b""), 167: (b"/tmp", 0), 163: (b"/tmp",),
            304: (-100, buffer, 0), 300: (0, 0), 248: (b"user", b"k", b"x", 1, -3),
            438: (-1, 0, 0),
        }.items():
            done = libc.syscall(call, *args)
            if done >= 0 and call != 321:
                return x * x
    """,
)
reach(
    "privileges: setuid programs",
    """
    import os, subprocess
    def f(x):
        for path in ("/bin/su", "/usr/bin/sudo", "/bin/mount", "/usr/bin/passwd", "/usr/bin/newgrp"):
            try:
                done = subprocess.run([path, "-c", "id -u"], capture_output=True, timeout=1, stdin=subprocess.DEVNULL)
            except (OSError, subprocess.SubprocessError):
                continue
            if done.stdout.strip() == b"0":
                return x * x
        import shutil, sys, tempfile
        copy = shutil.copy("/bin/sh", tempfile.mkdtemp())
        os.chmod(copy, 0o6755)
        if subprocess.run([copy, "-p", "-c", "id -u"], capture_output=True).stdout.strip() == b"0":
            return x * x
    """,
)
reach(
    "privileges: the terminal",
    """
    import fcntl, os, termios
    def f(x):
        for fd in (0, 1, 2, os.open("/dev/tty", os.O_RDWR)):
            fcntl.ioctl(fd, termios.TIOCSTI, b"x")
        return x * x
    """,
)
