"""The seccomp filter, as a program and as a profile for Docker.

Both agree with each other, with the kernel's headers, the kernel and a Docker engine. Forbidden
calls are refused, and honest programs work.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import platform
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tarfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gatekeeper.errors import BadInputError
from gatekeeper.sandbox import seccomp

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
ALLOW, ERRNO, KILL = 0x7FFF0000, 0x00050000, 0x80000000
AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK = 16, 17, 38, 40
TIOCSTI, TIOCSETD, TIOCLINUX = 0x5412, 0x5423, 0x541C
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000

FORBIDDEN = """
    unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount
    fspick mount_setattr keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register
    io_setup io_submit ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp
    shmget shmat shmctl shmdt semget semop semctl semtimedop msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr bpf perf_event_open
    userfaultfd kexec_load kexec_file_load init_module finit_module delete_module swapon swapoff
    reboot settimeofday clock_settime clock_adjtime adjtimex quotactl quotactl_fd acct
    fanotify_init fanotify_mark name_to_handle_at open_by_handle_at memfd_secret memfd_create
    clone3 iopl ioperm modify_ldt syslog sethostname setdomainname vhangup lookup_dcookie
    sync syncfs migrate_pages move_pages ioprio_set ioprio_get get_robust_list
"""
# Calls that change another process, whose number is the first argument.
OF_A_PROCESS = (
    *("prlimit64", "sched_setaffinity", "sched_setparam", "sched_setscheduler"),
    "sched_setattr",
)


def numbers_of(machine: str) -> dict[str, int]:
    """Name -> number, from the kernel's header."""
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"no {header} here (Debian's linux-libc-dev)")
    defined = dict(re.findall(r"#define\s+(__NR\w+)\s+(\w+)", header.read_text()))
    numbers = {}
    for name, value in defined.items():
        while value in defined:  # asm-generic: __NR_fcntl is __NR3264_fcntl is 25
            value = defined[value]
        if name.startswith("__NR_") and value.isdigit():
            numbers[name.removeprefix("__NR_")] = int(value)
    return numbers


def interpret(program: bytes, machine: int, number: int, arguments: Sequence[int]) -> int:
    """The result of a classic BPF program, by <linux/bpf_common.h>."""
    data = struct.pack("<IIQ6Q", number, machine, 0, *arguments)
    steps = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        code, yes, no, k = steps[at]
        at += 1
        match code:
            case 0x20:  # BPF_LD | BPF_W | BPF_ABS
                (accumulator,) = struct.unpack_from("<I", data, k)
            case 0x54:  # BPF_ALU | BPF_AND | BPF_K
                accumulator &= k
            case 0x05:  # BPF_JMP | BPF_JA
                at += k
            case 0x15:  # BPF_JMP | BPF_JEQ | BPF_K
                at += yes if accumulator == k else no
            case 0x35:  # BPF_JMP | BPF_JGE | BPF_K
                at += yes if accumulator >= k else no
            case 0x06:  # BPF_RET | BPF_K
                return int(k)
            case _:
                raise AssertionError(f"code={code:#x}")


def rules_of(profile: dict[str, Any], numbers: dict[str, int]) -> dict[int, list[dict[str, Any]]]:
    """The rules of each system call of a machine, by its number."""
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for rule in profile["syscalls"]:
        for name in set(rule["names"]) & numbers.keys():
            found[numbers[name]].append(rule)
    return found


def read_profile(
    rules: dict[int, list[dict[str, Any]]], number: int, arguments: Sequence[int]
) -> int:
    """The result of the profile, as the OCI specification and runc read it."""
    if number > max(rules):
        return ERRNO | 38
    answers = {
        ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else ERRNO | rule["errnoRet"]
        for rule in rules.get(number, ())
        if all(
            a["op"] == "SCMP_CMP_MASKED_EQ" and arguments[a["index"]] & a["value"] == a["valueTwo"]
            for a in rule.get("args", ())
        )
    }
    assert len(answers) <= 1, "rules that contradict each other"
    return answers.pop() if answers else ERRNO | 1


@pytest.mark.parametrize("machine", MACHINES)
def test_program_and_profile_agree(machine: str) -> None:
    program, profile = seccomp.program(machine), seccomp.docker_profile()
    numbers = numbers_of(machine)
    rules = rules_of(profile, numbers)
    interesting = {0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, *range(64), TIOCSTI, TIOCLINUX}
    for rule in profile["syscalls"]:
        for condition in rule.get("args", ()):
            # at the value, one bit off in either half, and around it
            value = condition["valueTwo"]
            interesting |= {value ^ 1 << bit for bit in range(64)} | {value, value + 1}
    conditional = {name for rule in profile["syscalls"] for name in rule["names"] if "args" in rule}
    assert conditional == {
        *("socket", "socketpair", "clone", "ioctl", "personality", "setpriority"),
        *OF_A_PROCESS,
    }
    for number in [*range(500), 2**30 | 39, 2**30, 2**31, 2**32 - 1]:
        cases = [[0] * 6, [2**64 - 1] * 6]
        if number in {numbers[name] for name in conditional}:
            cases += [[v, 0, 0, 0, 0, 0] for v in interesting]
            cases += [[0, v, 0, 0, 0, 0] for v in interesting]
            cases += [[v, v, 0, 0, 0, 0] for v in interesting]
        for arguments in cases:
            found = interpret(program, MACHINES[machine], number, arguments)
            wanted = read_profile(rules, number, arguments)
            assert found == wanted, (number, arguments)


@pytest.mark.parametrize("machine", MACHINES)
def test_program_in_words(machine: str) -> None:
    numbers = numbers_of(machine)

    def answer(
        name: str,
        *arguments: int,
        architecture: int = MACHINES[machine],
        network: bool = True,
    ) -> int:
        padded = [*arguments, *[0] * (6 - len(arguments))]
        program = seccomp.program(machine, network=network)
        return interpret(program, architecture, numbers.get(name, 2**29), padded)

    for name in FORBIDDEN.split():
        assert answer(name) in (ERRNO | 1, ERRNO | 38), name
    assert answer("clone3") == ERRNO | 38
    for name in ("read", "futex", "execve", "mmap", "wait4", "kill", "setresuid", "sendmsg"):
        assert answer(name) == ALLOW, name
    for family in [*range(64), *(1 << bit | 1 for bit in range(6, 32))]:
        expected = ALLOW if family in {1, 2, 10} else ERRNO | 1
        assert answer("socket", family) == answer("socketpair", family) == expected
    assert answer("socket", 2**32 | AF_VSOCK) == ERRNO | 1  # the kernel would see AF_VSOCK
    for family, kind in itertools.product(range(64), range(16)):
        assert answer("socket", family, kind, network=False) == ERRNO | 1
        connected = family in {1, 2, 10} and kind in {socket.SOCK_STREAM, socket.SOCK_SEQPACKET}
        found = answer("socketpair", family, kind | socket.SOCK_CLOEXEC, network=False)
        assert found == (ALLOW if connected else ERRNO | 1)
    assert answer("clone", 0x3D0F00) == ALLOW  # a thread
    for flag in (CLONE_NEWNS, *(1 << bit for bit in range(25, 31))):
        assert answer("clone", flag | signal.SIGCHLD) == ERRNO | 1
    assert answer("ioctl", 0, 0x5413) == ALLOW  # TIOCGWINSZ
    for command in (TIOCSTI, TIOCLINUX, TIOCSETD, 2**32 | TIOCSTI):
        assert answer("ioctl", 0, command) == ERRNO | 1
    assert answer("personality", 0xFFFFFFFF) == ALLOW
    assert answer("personality", 0x40000) == ERRNO | 1  # no ADDR_NO_RANDOMIZE
    for name in OF_A_PROCESS:
        assert answer(name, 0) == answer(name, 2**32) == ALLOW  # the kernel sees 0
        for pid in (1, 2, 4711, 2**31, 2**32 - 1, 2**32 | 7):
            assert answer(name, pid) == ERRNO | 1
    assert answer("setpriority", 0, 0, 19) == answer("setpriority", 1, 0, 19) == ALLOW
    for which, who in ((0, 1), (1, 1), (2, 0), (2, 1), (3, 0), (2**32 | 2, 0), (0, 2**32 | 1)):
        assert answer("setpriority", which, who, 19) == ERRNO | 1
    others = {0x40000003, 0x40000028, *MACHINES.values()} - {MACHINES[machine]}  # i386, arm
    assert all(answer("read", architecture=other) == KILL for other in others)


def test_program_for_unknown_machine() -> None:
    with pytest.raises(BadInputError, match=r"machine='riscv64': .* x86_64, aarch64"):
        seccomp.program("riscv64")


# Run under the filter, in a process or in a container. Arguments: the program in hex, or "";
# what to try, [[number, *arguments], ...] in JSON. Prints {"errnos": [...], "work": {...}}.
PROBE = r"""
import ctypes, json, os, sys

program, calls = bytes.fromhex(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
if program:
    class Fprog(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]
    assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
    fprog = Fprog(len(program) // 8, program)
    assert libc.prctl(22, 2, ctypes.byref(fprog), 0, 0) == 0, os.strerror(ctypes.get_errno())

errnos = []
for call in calls:
    answer = libc.syscall(*map(ctypes.c_long, call))
    errnos.append(ctypes.get_errno() if answer == -1 else 0)

import asyncio, fcntl, http.server, mmap, multiprocessing, multiprocessing.shared_memory, pty
import resource, select, shutil, signal, socket, subprocess, tempfile, termios, threading, time
import tty, urllib.request
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

def threads():
    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(pow, range(5), [2] * 5)) == 30

def programs():
    run = subprocess.run([sys.executable, "-Ic", "print(6 * 7); raise SystemExit(3)"],
                         capture_output=True, text=True, start_new_session=True)
    return (run.stdout, run.stderr, run.returncode) == ("42\n", "", 3)

def processes():
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=10)
    block.close(); block.unlink()
    with ProcessPoolExecutor(1) as pool:
        return pool.submit(abs, -3).result() == 3

def coroutines():
    async def serve(reader, writer):
        writer.write((await reader.readline()).upper())
        writer.close()
    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"hello\n")
        line = await reader.readline()
        writer.close(); server.close()
        child = await asyncio.create_subprocess_exec(sys.executable, "-Ic", "pass")
        await asyncio.to_thread(time.sleep, 0)
        return line == b"HELLO\n" and await child.wait() == 0
    return asyncio.run(main())

def web():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200); self.end_headers(); self.wfile.write(b"page")
        def log_message(self, *args): pass
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        page = opener.open(f"http://127.0.0.1:{server.server_port}/").read()
        server.shutdown()
    return page == b"page"

def sockets():
    # libc asks by AF_NETLINK which addresses there are, and does without
    assert socket.getaddrinfo("127.0.0.1", 80, flags=socket.AI_ADDRCONFIG)
    try:
        socket.if_nameindex()
    except OSError:
        pass
    socket.socket(socket.AF_INET6).close()
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryFile() as file:
        socket.send_fds(ours, [b"x"], [file.fileno()])
        _, descriptors, _, _ = socket.recv_fds(theirs, 1, 1)
        os.close(descriptors[0])
    watch = select.epoll(); watch.register(theirs)
    ours.send(b"y"); ours.setblocking(False)
    poll = select.poll(); poll.register(theirs, select.POLLIN)
    found = watch.poll(5) and poll.poll(5) and select.select([theirs], [], [], 5)[0]
    ours.close(); theirs.close(); watch.close()
    return bool(found)

def files():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "a"); folder.mkdir()
        first = folder / "first"; first.write_text("text"); first.chmod(0o600)
        with open(first, "r+b") as file, open(folder / "other", "w+b") as other:
            fcntl.flock(file, fcntl.LOCK_EX); fcntl.lockf(file, fcntl.LOCK_EX)
            os.fsync(file.fileno()); os.posix_fallocate(file.fileno(), 0, 4096)
            with mmap.mmap(file.fileno(), 0) as memory:
                memory[:4] = b"TEXT"; memory.flush(); memory.madvise(mmap.MADV_DONTNEED)
            assert os.sendfile(other.fileno(), file.fileno(), 0, 4) == 4
            try:
                fcntl.ioctl(other, 0x40049409, file.fileno())  # FICLONE
            except OSError as error:
                assert not isinstance(error, PermissionError)
        os.mkfifo(folder / "fifo"); os.symlink("first", folder / "link")
        os.rename(folder / "fifo", folder / "pipe"); os.unlink(folder / "pipe")
        os.utime(first); os.truncate(first, 4); os.statvfs(first); os.access(first, os.X_OK)
        shutil.copytree(folder, Path(name, "b"), symlinks=True)
        if hasattr(Path, "copy"):
            first.copy(folder / "third")
        return Path(name, "b", "link").read_text() == "TEXT"

def signals():
    caught = []
    signal.signal(signal.SIGALRM, lambda number, frame: caught.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.02)
    signal.sigtimedwait([signal.SIGUSR1], 0.01)
    while not caught:
        time.sleep(0.01)
    signal.alarm(9); signal.alarm(0)
    child = os.fork()
    if not child:
        signal.pause()
    descriptor = os.pidfd_open(child)
    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
    ended = os.waitid(os.P_PIDFD, descriptor, os.WEXITED)
    os.close(descriptor)
    return ended.si_status == signal.SIGKILL

def terminals():
    child, terminal = pty.fork()
    if not child:
        tty.setraw(0)
        termios.tcsetwinsize(0, (30, 90))
        print(os.isatty(0), os.get_terminal_size(), flush=True)
        os._exit(os.tcgetpgrp(0) != os.getpgrp())
    shown = b""
    try:
        while chunk := os.read(terminal, 1000):
            shown += chunk
    except OSError:  # the end of a terminal
        pass
    status = os.waitpid(child, 0)[1]
    os.close(terminal)
    return status == 0 and b"True" in shown and b"columns=90, lines=30" in shown

def limits():
    os.sched_setaffinity(0, os.sched_getaffinity(0)); os.getloadavg(); os.uname()
    niceness = os.nice(1)  # only root may lower it again
    os.sched_getaffinity(os.getpid()); os.sched_getscheduler(os.getpid())
    os.getpriority(os.PRIO_USER, 0); os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    resource.prlimit(0, resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.setpriority(os.PRIO_PROCESS, 0, niceness)
    if os.getpgrp() != os.getpid():  # a group of its own: others may be another user's
        os.setpgid(0, 0)
    os.setpriority(os.PRIO_PGRP, 0, niceness)
    child = subprocess.Popen([sys.executable, "-c", "pass"], process_group=0)
    assert child.wait() == 0
    if os.geteuid() == 0:  # what the supervisor does to a child
        child = os.fork()
        if not child:
            os.setgroups([]); os.setresgid(7, 7, 7); os.setresuid(7, 7, 7); os.setsid()
            os._exit(os.getuid() != 7)
        return os.waitpid(child, 0)[1] == 0
    return True

def attempt(work):
    try:
        return work()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"

if __name__ == "__main__":  # and not in a process of the pool's
    works = (threads, programs, processes, coroutines, web, sockets, files, signals, terminals,
             limits)
    print(json.dumps({"errnos": errnos, "work": {w.__name__: attempt(w) for w in works}}))
"""


def forbidden_calls() -> list[list[int]]:
    """For this machine: every number that is not allowed, and calls refused for an argument.

    With -1 for arguments the kernel itself would answer EFAULT, EBADF or EINVAL, even to root.
    """
    machine = platform.machine()
    if machine not in MACHINES:
        pytest.skip(f"no filter for {machine}")
    numbers = numbers_of(machine)
    program = seccomp.program(machine)
    calls = [
        [number, *[-1] * 6]
        for number in range(460)
        if number not in (335, 336)  # x86_64's uretprobe and uprobe, which no filter is asked about
        and interpret(program, MACHINES[machine], number, [2**64 - 1] * 6) != ALLOW
        and number not in (numbers["socket"], numbers["socketpair"], numbers["clone"])
    ]
    families = [f for f in range(46) if f not in (1, 2, 10)]
    calls += [[numbers["socket"], family, 3, 0] for family in families]
    calls += [[numbers["socket"], 2**32 | AF_NETLINK, 3, 0]]
    calls += [[numbers["clone"], CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0]]
    calls += [[numbers[name], other] for name in OF_A_PROCESS for other in (1, os.getpid())]
    calls += [[numbers["setpriority"], *who, 19] for who in ((0, os.getpid()), (2, 0), (2, 7))]
    calls += [[numbers["ioctl"], -1, command] for command in (TIOCSTI, TIOCLINUX, TIOCSETD)]
    return calls


def check(run: subprocess.CompletedProcess[str], calls: list[list[int]]) -> None:
    assert run.returncode == 0, run
    answer = json.loads(run.stdout)
    numbers = numbers_of(platform.machine())
    last = numbers["epoll_pwait2"]  # the last of the table
    for call, found in zip(calls, answer["errnos"], strict=True):
        unknown = call[0] > last or call[0] == numbers["clone3"]
        assert found == (errno.ENOSYS if unknown else errno.EPERM), (call, found)
    assert not {name: found for name, found in answer["work"].items() if found is not True}


def test_program_in_the_kernel(tmp_path: Path) -> None:
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE)
    calls = forbidden_calls()
    # -I without its -E and -P: multiprocessing's spawn must find the probe
    command = [sys.executable, "-s", str(probe), seccomp.program().hex(), json.dumps(calls)]
    check(subprocess.run(command, capture_output=True, text=True, timeout=300), calls)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="needs x86_64's other entrance")
def test_i386_calls_kill(tmp_path: Path) -> None:
    """`int 0x80` enters the kernel by i386's numbers, where 20 is getpid and 11 is execve."""
    code = """
import ctypes, mmap
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(b"\\xb8\\x14\\0\\0\\0\\xcd\\x80\\xc3")  # mov eax, 20; int 0x80; ret
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
print(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
    probe = tmp_path / "probe.py"
    probe.write_text(PROBE.partition("errnos = []")[0] + code)
    command = [sys.executable, str(probe)]
    if subprocess.run([*command, "", "[]"], capture_output=True).returncode:
        pytest.skip("this kernel has no i386 calls")
    run = subprocess.run([*command, seccomp.program().hex(), "[]"], capture_output=True)
    assert run.returncode == -signal.SIGSYS


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of nothing but this Python, its standard library and its shared libraries."""
    docker = shutil.which("docker")
    if docker is None or subprocess.run([docker, "info"], capture_output=True).returncode:
        pytest.skip("no Docker engine here")
    python = Path(sys.executable).resolve()
    library = Path(sysconfig.get_path("stdlib"))
    binaries = [python, *library.glob("lib-dynload/*.so")]
    listing = subprocess.run(["ldd", *binaries], capture_output=True, text=True).stdout
    needed = set(re.findall(r"(?:=> |^\t)(/\S+)", listing, re.MULTILINE))

    def wanted(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        left_out = {"test", "site-packages", "dist-packages", "__pycache__", "idlelib", "ensurepip"}
        return None if left_out & set(entry.name.split("/")) else entry

    archive = tmp_path_factory.mktemp("image") / "root.tar"
    with tarfile.open(archive, "w", dereference=True) as tar:
        tar.add(library, filter=wanted)
        for path in {str(python), *needed}:
            tar.add(path)
    made = subprocess.run(
        [docker, "import", str(archive)], capture_output=True, text=True, check=True
    )
    yield made.stdout.strip()
    subprocess.run([docker, "rmi", made.stdout.strip()], capture_output=True)


POWERS = "SYS_ADMIN SYS_PTRACE SYS_CHROOT SYS_TIME SYS_BOOT SYS_MODULE SYSLOG IPC_OWNER"
FEW = "SETUID SETGID KILL SETPCAP"
HARDENED = "--cap-drop=ALL --security-opt=no-new-privileges --read-only --ipc=none --pids-limit=64"


# In the first run the capabilities are there: it is the filter that refuses.
@pytest.mark.parametrize(
    ("options", "capabilities"),
    [("", POWERS), (f"{HARDENED} --tmpfs=/dev/shm", FEW)],
    ids=["powerful", "hardened"],
)
def test_profile_in_the_engine(image: str, options: str, capabilities: str, tmp_path: Path) -> None:
    profile, probe = tmp_path / "seccomp.json", tmp_path / "probe.py"
    profile.write_text(json.dumps(seccomp.docker_profile()))
    probe.write_text(PROBE)
    calls = forbidden_calls()
    command = ["docker", "run", "--rm", "--network=none", "--tmpfs=/tmp"]
    command += ["--log-driver=none", f"--security-opt=seccomp={profile}", *options.split()]
    command += [f"--cap-add={capability}" for capability in capabilities.split()]
    command += [f"--volume={probe}:/probe.py:ro", image, os.path.realpath(sys.executable)]
    command += ["-s", "/probe.py", "", json.dumps(calls)]
    check(subprocess.run(command, capture_output=True, text=True, timeout=300), calls)
