"""The program of the sandboxed process: runs one candidate and answers on a private pipe.

Run as a script by `gatekeeper.sandbox.local`; standard library only, few imports (start-up time),
never the rest of gatekeeper. Nothing in here knows what a test expects: it computes values and
sends them away as plain data, for the parent to compare.

Job, on standard input: texts, each as 8 bytes of length (little endian) and UTF-8 (surrogates
let through): the candidate, the setup code, then one call expression for each test; in mode
"in_process" the nonce, then one test statement for each test.

Answer, on the pipe: frames of a kind byte, 4 bytes of length (little endian) and a payload.

    R  ready: isolated and limited, the candidate comes next; payload: the isolation reached
    V  the value of the next call, encoded as below
    E  an exception ended the run; text
    M  memory ran out; text
    L  a value is too large to send; text
    P  in_process only: the next test passed; payload: the nonce

Values are written in prefix order; n is 4 bytes, little endian, a count of bytes or items:

    N None   T True   F False   . Ellipsis   i n int (two's complement)   f float (8 bytes)
    c complex (16 bytes)   s n str (UTF-8, surrogates let through)   b n bytes
    l n list   t n tuple   S n set   Z n frozenset   d n dict (n key, value pairs)
    q Fraction or Decimal: two ints, numerator and denominator
    o n anything else: 1 byte of truth value, name of its type
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` takes 4 ms more, for its enums
import ctypes
import os
import resource
import select
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SIGKILL, SIGTERM, SIGXCPU = 9, 15, 24
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS = 1, 4, 8, 38
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER = 0x20000, 0x8000000, 0x10000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 2, 4, 8, 0x4000, 0x40000
SYS_MOUNT_SETATTR, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, 0x8000, 1
CAPABILITY_VERSION_3, CAP_DAC_READ_SEARCH = 0x20080522, 1 << 2
NOBODY = 65534
FIRST_UID = 0x70000000  # plus a process number: a user nobody else is

MAX_DEPTH = 256  # Python's parser allows no literal as deep as that: nothing could equal it
MAX_BYTES = 4 << 20  # of all values together
MAX_HASHED = 4096  # entries of a value's sets and dicts: the parent takes no more
MAX_RATIO_BITS = 1 << 15
MAX_TEXT = 500  # characters of an exception's message


class TooLargeError(Exception):
    """A value would take more than `MAX_BYTES` to send."""


def encode(value: object, limit: int = MAX_BYTES) -> bytes:
    """Plain data as bytes; instances of subclasses as their built-in base.

    Works with a stack of its own, so depth is no danger; cycles end at `MAX_DEPTH` or at `limit`
    bytes. Raises TooLargeError.
    """
    out = bytearray()
    hashed = 0
    stack: list[tuple[Any, int]] = [(value, 0)]
    while stack:
        item, depth = stack.pop()
        kind = type(item)
        if depth > MAX_DEPTH or hashed > MAX_HASHED:
            return _opaque(value)
        if item is None or item is True or item is False or item is Ellipsis:
            out += _CONSTANTS[item]
        elif issubclass(kind, int):
            size = (int.bit_length(item) + 8) // 8
            if size > limit:
                raise TooLargeError
            out += _head(b"i", size) + int.to_bytes(item, size, "little", signed=True)
        elif issubclass(kind, float):
            out += b"f" + struct.pack("<d", item)
        elif issubclass(kind, complex):
            out += b"c" + struct.pack("<dd", item.real, item.imag)
        elif issubclass(kind, str):
            text = str.encode(item, "utf-8", "surrogatepass")
            out += _head(b"s", len(text)) + text
        elif issubclass(kind, (bytes, bytearray)):
            out += _head(b"b", len(item)) + bytes(item)
        elif issubclass(kind, dict):
            pairs = list(dict.items(item))
            hashed += len(pairs)
            out += _head(b"d", len(pairs))
            for key, entry in reversed(pairs):
                stack += ((entry, depth + 1), (key, depth + 1))
        elif base := next((base for base in _CONTAINERS if issubclass(kind, base)), None):
            items = list(base.__iter__(item))
            hashed += len(items) if _CONTAINERS[base] in b"SZ" else 0
            out += _head(_CONTAINERS[base], len(items))
            stack += [(entry, depth + 1) for entry in reversed(items)]
        elif ratio := _ratio(item):
            out += b"q"
            stack += [(number, depth + 1) for number in reversed(ratio)]
        else:
            out += _opaque(item)
        if len(out) + len(stack) > limit:  # whatever is on the stack takes a byte or more
            raise TooLargeError
    return bytes(out)


_CONSTANTS = {None: b"N", True: b"T", False: b"F", Ellipsis: b"."}
_CONTAINERS: dict[Any, bytes] = {
    list: b"l",
    tuple: b"t",
    set: b"S",
    frozenset: b"Z",
    type({}.keys()): b"S",  # equal to sets
    type({}.items()): b"S",
}


def _ratio(item: Any) -> tuple[int, int] | None:
    """Numerator and denominator of a Fraction or Decimal, which can equal ints and floats."""
    for module, name in (("fractions", "Fraction"), ("decimal", "Decimal")):
        base = getattr(sys.modules.get(module), name, None)
        if base is not None and issubclass(type(item), base):
            try:
                top, bottom = base.as_integer_ratio(item)
            except (ValueError, OverflowError):  # nan, infinity
                return None
            return (top, bottom) if max(abs(top), bottom).bit_length() < MAX_RATIO_BITS else None
    return None


def _head(tag: bytes, n: int) -> bytes:
    return tag + n.to_bytes(4, "little")


def _opaque(item: object) -> bytes:
    name = f"{type(item).__name__}".encode("utf-8", "replace")[:MAX_TEXT]
    return _head(b"o", len(name)) + (b"\1" if item else b"\0") + name


def _texts(stream: bytes) -> list[str]:
    """The texts of a job."""
    texts, at = [], 0
    while at < len(stream):
        end = at + 8 + int.from_bytes(stream[at : at + 8], "little")
        texts.append(stream[at + 8 : end].decode("utf-8", "surrogatepass"))
        at = end
    return texts


def _send(pipe: int, kind: bytes, payload: bytes) -> None:
    frame = memoryview(kind + len(payload).to_bytes(4, "little") + payload)
    while frame:
        frame = frame[os.write(pipe, frame) :]


def _describe(error: BaseException) -> bytes:
    try:
        text = str(error)
    except BaseException:  # a hostile __str__ hurts only its own message
        text = "(no message)"
    text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text[:MAX_TEXT].encode("utf-8", "replace")


def _run(pipe: int, mode: str, texts: list[str]) -> None:
    """Candidate, setup, tests, in this order (MBPP's); the first exception ends the run."""
    candidate, setup, *tests = texts
    nonce = tests.pop(0) if mode == "in_process" else ""
    # A module of its own, so that dataclasses, pickle and typing find the candidate's classes;
    # not "__main__", so that a demonstration at the end of the candidate does not run.
    module = type(sys)("candidate")
    sys.modules["candidate"] = module
    namespace = module.__dict__
    where = "in the code"
    try:
        # `compile` of a text, because Python drops what follows a NUL when it runs a *file*.
        exec(compile(candidate, "candidate.py", "exec", dont_inherit=True), namespace)
        where = "in the setup code"
        exec(compile(setup, "setup.py", "exec", dont_inherit=True), namespace)
        room = MAX_BYTES
        for number, test in enumerate(tests, 1):
            where = f"in test {number}"
            if mode == "in_process":
                exec(compile(test, "test.py", "exec", dont_inherit=True), namespace)
                _send(pipe, b"P", nonce.encode())
            else:
                value = eval(compile(test, "test.py", "eval", dont_inherit=True), namespace)
                encoded = encode(value, room)
                room -= len(encoded)
                _send(pipe, b"V", encoded)
    except MemoryError:
        _send(pipe, b"M", f"{where}: out of memory".encode())
    except TooLargeError:
        _send(pipe, b"L", f"{where}: the result is too large to compare".encode())
    except BaseException as error:
        _send(pipe, b"E", f"{where}: ".encode() + _describe(error))


def _separate(libc: ctypes.CDLL) -> bool:
    """Enter new namespaces: no network, and processes that die with their first one.

    An ordinary user needs a user namespace for that, which also keeps the candidate from reading
    the memory of other processes. False where the kernel says no.
    """
    flags = CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0:
        return bool(libc.unshare(flags) == 0)
    if libc.unshare(flags | CLONE_NEWUSER):
        return False
    maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
    for name, text in maps.items():
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _protect_files(libc: ctypes.CDLL, disk_mb: int) -> bool:
    """Make every file read-only and go to an empty directory in memory, which can be written."""
    if libc.unshare(CLONE_NEWNS):
        return False
    libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None)
    # Refused where /proc is masked, as in most containers; then the old one stays.
    libc.mount(b"proc", b"/proc", b"proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, None)
    attributes = struct.pack("=4Q", MOUNT_ATTR_RDONLY, 0, 0, 0)
    if libc.syscall(
        SYS_MOUNT_SETATTR, 0, b"/", AT_RECURSIVE, attributes, ctypes.c_size_t(len(attributes))
    ):
        return False
    hides_python = any(path.startswith("/tmp/") for path in sys.path)
    work = os.getcwd() if hides_python else "/tmp"
    options = f"size={disk_mb}m,nr_inodes=20k,mode=1777".encode()
    for path in ("/dev/shm", work):
        libc.mount(b"tmpfs", path.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options)
    os.chdir(work)
    return os.access(".", os.W_OK)


def _drop_privileges(libc: ctypes.CDLL, uid: int) -> None:
    """Give up all capabilities and, as root, become a user of one's own."""
    kept = 0
    if os.geteuid() == 0:
        home = os.path.dirname(os.__file__)
        while home != "/" and os.stat(home).st_mode & 1:
            home = os.path.dirname(home)
        if home != "/":  # Python lives in a private directory, such as /root: let it be read
            kept = CAP_DAC_READ_SEARCH
        libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        os.setgroups([])
        try:
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        except OSError:  # a container with few users
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)):
        raise OSError("capset was refused")
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # or /proc/self is closed to its own process


def _limit(memory_mb: int, cpu_seconds: int, disk_mb: int, processes: int) -> None:
    """Hard limits of this process and, each by itself, of all it starts."""
    limits = {
        resource.RLIMIT_AS: memory_mb << 20,
        resource.RLIMIT_CPU: cpu_seconds,
        resource.RLIMIT_FSIZE: disk_mb << 20,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_CORE: 0,
    }
    if not processes:
        del limits[resource.RLIMIT_NPROC]
    for which, value in limits.items():
        resource.setrlimit(which, (value, value))


def _supervise(candidate: int, cpu_seconds: int) -> None:
    """Wait for the candidate, end what it started, leave as it did. Never returns.

    SIGTERM ends the candidate early.
    """
    _signal.signal(SIGTERM, lambda *_: os.kill(candidate, SIGKILL))
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [SIGTERM])
    os.waitid(os.P_PID, candidate, os.WEXITED | os.WNOWAIT)
    try:  # noqa: SIM105 - an import of contextlib takes 2 ms
        os.killpg(candidate, SIGKILL)
    except OSError:  # nobody left
        pass
    try:  # noqa: SIM105 - the parent does this too, but it may be dead
        os.rmdir(os.getcwd())
    except OSError:
        pass
    _, status, usage = os.wait4(candidate, 0)
    code = os.waitstatus_to_exitcode(status)
    # The kernel kills at the hard limit; this says why. Its two clocks differ by a few ticks.
    if code == -SIGKILL and usage.ru_utime + usage.ru_stime > cpu_seconds - 0.1:
        code = -SIGXCPU
    os._exit(code if code >= 0 else 128 - code)


def main() -> None:
    mode, *numbers = sys.argv[1:]
    memory_mb, cpu_seconds, disk_mb, processes, pipe = map(int, numbers)
    with open(0, "rb", closefd=False) as stdin:
        texts = _texts(stdin.read())
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)

    libc = ctypes.CDLL(None)
    root, uid = os.geteuid() == 0, FIRST_UID + os.getpid()
    if root:
        os.chown(".", uid, uid)
    separate = _separate(libc)
    # SIGTERM waits until the supervisor can pass it on: no candidate goes on alone.
    _signal.pthread_sigmask(_signal.SIG_BLOCK, [SIGTERM])
    libc.prctl(PR_SET_PDEATHSIG, SIGTERM)
    child = os.fork()
    if child:
        os.close(pipe)
        _supervise(child, cpu_seconds)
    try:
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, [SIGTERM])
        os.setsid()  # a group of its own, so that it cannot signal the supervisor's
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")  # where the machine runs out of memory, the candidate goes first
        isolation = "process"
        if separate:
            isolation += "+nonet"
            if _protect_files(libc, disk_mb):
                isolation += "+readonly"
        _drop_privileges(libc, uid)
        libc.prctl(PR_SET_PDEATHSIG, SIGKILL)  # after what would have cleared it
        waiting = select.poll()
        waiting.register(pipe, 0)
        if waiting.poll(0):  # nobody reads: the parent died before PDEATHSIG was set
            return
        # Without a user of its own, the candidate would be counted with all of the caller's.
        _limit(memory_mb, cpu_seconds, disk_mb, processes if separate or root else 0)
        _send(pipe, b"R", isolation.encode())
        _run(pipe, mode, texts)
        sys.stdout.flush()
    except Exception as error:
        sys.stderr.write(f"{type(error).__name__}: {error}")
        sys.stderr.flush()
    finally:
        os._exit(0)


if __name__ == "__main__":
    main()
