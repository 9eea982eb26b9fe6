"""Confines a process: namespaces, mounts, Landlock, user, limits. Linux system calls by ctypes.

Levels of isolation, the strongest first:

    docker      the container isolates; each process only gets a user of its own
    namespaces  a read-only root directory with Python and system libraries; no network; other
                processes are not visible; processes that it starts end with it
    landlock    reads system files and Python, and writes to one directory; no sockets; no signals
                to other processes
    none        limits only
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import resource
import struct
import sys
from dataclasses import dataclass

__all__ = [
    "Limits",
    "adopt_orphans",
    "confine",
    "drop_bounding_set",
    "enclose",
    "fork",
    "keep_signals_in",
    "landlock_version",
    "users",
]

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP = 1, 4, 22, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 36, 38
SECCOMP_MODE_FILTER = 2
SIGKILL, SIGCHLD = 9, 17
SYS_CLONE = {"x86_64": 56, "aarch64": 220}
CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2
SYS_MOUNT_SETATTR, AT_RECURSIVE = 442, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SYS_LANDLOCK_CREATE, SYS_LANDLOCK_ADD, SYS_LANDLOCK_RESTRICT = 444, 445, 446
PR_SET_KEEPCAPS = 8
CAPABILITY_VERSION_3, CAP_DAC_READ_SEARCH = 0x20080522, 1 << 2
DEVICES = ("null", "zero", "full", "random", "urandom")

libc = ctypes.CDLL(None, use_errno=True)
_locked = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock, which a fork needs


@dataclass(frozen=True)
class Limits:
    """The limits of a process and of each one that it starts; 0 where the container sets it."""

    cpu_seconds: int
    memory_mb: int
    disk_mb: int
    processes: int


def _check(result: int, what: str) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
    return result


def _mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    texts = [text.encode() if text else None for text in (source, target, kind)]
    _check(libc.mount(*texts, ctypes.c_ulong(flags), options.encode() or None), f"mount {target}")


def _read_only(path: str) -> None:
    attributes = struct.pack("=4Q", MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    size = ctypes.c_size_t(len(attributes))
    result = libc.syscall(SYS_MOUNT_SETATTR, -100, path.encode(), AT_RECURSIVE, attributes, size)
    _check(result, "mount_setattr")


def enclose(paths: list[str]) -> None:
    """Change to a root directory with `paths`, /proc and a few devices, all read-only.

    An ordinary user's process gets a user namespace for that. Raises OSError if the kernel refuses.
    """
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | (CLONE_NEWUSER if uid else 0)
    _check(libc.unshare(flags), "unshare")
    if uid:
        maps = {"setgroups": "deny", "uid_map": f"{uid} {uid} 1", "gid_map": f"{gid} {gid} 1"}
        for name, text in maps.items():
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    _mount("", "/", None, MS_REC | MS_PRIVATE)
    root = "/tmp"
    _mount("tmpfs", root, "tmpfs", MS_NOSUID | MS_NODEV, "mode=755,size=4m")
    for name in ("dev/shm", "proc", "tmp", "var/tmp", "old"):
        os.makedirs(f"{root}/{name}")
    pivot = SYS_PIVOT_ROOT[platform.machine()]
    _check(libc.syscall(pivot, root.encode(), f"{root}/old".encode()), "pivot_root")
    os.chdir("/")
    for path in paths:
        _show(path)
    for name in DEVICES:
        open(f"/dev/{name}", "w").close()
        _mount(f"/old/dev/{name}", f"/dev/{name}", None, MS_BIND)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"/dev/{name}")
    os.symlink("/proc/self/fd", "/dev/fd")
    _mount("/old/proc", "/proc", None, MS_BIND | MS_REC)
    _check(libc.umount2(b"/old", MNT_DETACH), "umount")
    os.rmdir("/old")
    _read_only("/")


def _show(path: str) -> None:
    """Make a path of the old root directory visible in the new one; links stay links."""
    old = f"/old{path}"
    if os.path.islink(old):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(os.readlink(old), path)
    elif os.path.isdir(old):
        os.makedirs(path, exist_ok=True)
        _mount(old, path, None, MS_BIND | MS_REC)
    elif os.path.exists(old):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w").close()
        _mount(old, path, None, MS_BIND)


def adopt_orphans() -> None:
    """Make this process the parent of orphans among its descendants."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def drop_bounding_set() -> None:
    """Ensure that no process started later gains capabilities; this process keeps its own."""
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)


def fork(*, new_pid_namespace: bool) -> int:
    """Fork, optionally with the child as the first process of a new namespace. Raises OSError.

    With `clone`, because a process can `unshare` its children's namespace only once, and an
    ordinary user cannot return to the old one.
    """
    if not new_pid_namespace:
        return os.fork()
    _locked.PyOS_BeforeFork()
    pid = int(_locked.syscall(SYS_CLONE[platform.machine()], CLONE_NEWPID | SIGCHLD, 0, 0, 0, 0))
    if pid == 0:
        _locked.PyOS_AfterFork_Child()
    else:
        _locked.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(ctypes.get_errno(), f"clone: {os.strerror(ctypes.get_errno())}")
    return pid


def confine(level: str, limits: Limits, *, uid: int, seccomp: bytes, directory: str) -> None:
    """Confine this process; it cannot undo that. Raises OSError if the kernel refuses a step."""
    os.setsid()
    if level == "namespaces":
        _separate(limits.disk_mb, directory)
    with contextlib.suppress(FileNotFoundError):
        # Not by `open`, which writes to, and so copies, 30 more of the pages that children share.
        score = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(score, b"1000")  # if memory runs out, the kernel kills the candidate first
        os.close(score)
    os.chdir(directory)
    os.environ["TMPDIR"] = directory
    # This capability overrides file modes; Landlock still limits what can be read.
    bare = level in ("landlock", "none")
    kept = CAP_DAC_READ_SEARCH if bare and _private_python() else 0
    root = os.geteuid() == 0
    if root:
        if kept:
            libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        _become(uid)  # this removes all capabilities that are not kept
    if kept or not root:
        _keep_capabilities(kept)
    if level != "docker":
        # Permanent: no program that it starts gets more rights.
        _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
        libc.prctl(PR_SET_PDEATHSIG, SIGKILL)
    if level == "landlock":
        _landlock(directory)
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # else the process cannot read its own /proc/self
    _limit(limits)
    if seccomp:
        _filter(seccomp)


def _separate(disk_mb: int, directory: str) -> None:
    flags = CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP
    _check(libc.unshare(flags), "unshare")
    try:
        _mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:  # in most containers, because parts of /proc are masked there
        _mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV, "size=0,mode=555")
    for path in (directory, "/dev/shm"):
        options = f"size={disk_mb}m,nr_inodes=20k,mode=1777"
        _mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV, options)
    if os.path.exists("/dev/pts"):  # made by bubblewrap; an ordinary user's candidate owns it
        options = "newinstance,ptmxmode=666,mode=620"
        _mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options)


def users(first: int, count: int) -> range:
    """User and group numbers for processes: these, or others if the user namespace lacks them.

    Empty in a namespace with three users or fewer.
    """
    spans = [_longest(f"/proc/self/{name}") for name in ("uid_map", "gid_map")]
    low, high = max(span.start for span in spans), min(span.stop for span in spans)
    if low <= first and first + count <= high:
        return range(first, first + count)
    quarter = (high - low) // 4  # system users have the lowest numbers, `nobody` a high one
    return range(low + quarter, low + 2 * quarter)


def _longest(path: str) -> range:
    """The longest range of numbers in a user or group map; all numbers if there is no map."""
    with contextlib.suppress(FileNotFoundError), open(path) as file:
        lines = [[*map(int, line.split())] for line in file]
        return max((range(line[0], line[0] + line[2]) for line in lines), key=len)
    return range(1 << 32)


def _become(uid: int) -> None:
    """Change to this user and group; the process cannot change back."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _keep_capabilities(kept: int) -> None:
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    _check(libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0)), "capset")


def _private_python() -> bool:
    """Whether Python is in a directory that only root can read, such as /root."""
    home = os.path.dirname(os.__file__)
    while home != "/" and os.stat(home).st_mode & 1:
        home = os.path.dirname(home)
    return os.geteuid() == 0 and home != "/"


def _limit(limits: Limits) -> None:
    wanted = {
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_AS: limits.memory_mb << 20,
        resource.RLIMIT_FSIZE: limits.disk_mb << 20,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_NOFILE: 256,
    }
    for which, value in wanted.items():
        if value:
            resource.setrlimit(which, (value, value))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class _Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_char_p))


def _filter(program: bytes) -> None:
    loaded = _Program(len(program) // 8, program)
    result = libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(loaded), 0, 0)
    _check(result, "seccomp")


_FS_READ = 1 << 0 | 1 << 2 | 1 << 3  # execute, read file, read directory
_FS_ALL = (1 << 16) - 1  # version 5: all rights to files, including ioctl on devices
_FS_FILE = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14 | 1 << 15  # the rights that apply to a file
_TCP = 3  # bind and connect
_SCOPE_SOCKETS, _SCOPE_SIGNALS = 1, 2  # to abstract unix sockets; to processes
_RULE_PATH_BENEATH = 1
_LANDLOCK_VERSION = 1  # flag of landlock_create_ruleset
READABLE = (
    *("/usr", "/lib", "/lib64", "/bin", "/sbin", "/opt", "/proc/self", "/etc/ld.so.cache"),
    *("/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/localtime", "/etc/hosts"),
)


def landlock_version() -> int:
    """The kernel's version of Landlock; 0 if it has none. From 6 on, signals can be restricted."""
    return max(0, int(libc.syscall(SYS_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)))


def keep_signals_in() -> None:
    """Restrict signals, `kill(-1)` too, to this process and those that it starts.

    Raises OSError if the kernel refuses, or if a signal still reaches another process.
    """
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    ruleset = _ruleset(0, 0, _SCOPE_SIGNALS)
    _check(libc.syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)
    with contextlib.suppress(PermissionError):
        os.kill(os.getppid() or 1, 0)
        raise OSError("Landlock does not keep signals in")


def _ruleset(files: int, network: int, scopes: int) -> int:
    rules = struct.pack("=3Q", files, network, scopes)
    create = libc.syscall(SYS_LANDLOCK_CREATE, rules, ctypes.c_size_t(len(rules)), 0)
    return _check(create, "landlock")


def _landlock(directory: str) -> None:
    ruleset = _ruleset(_FS_ALL, _TCP, _SCOPE_SOCKETS | _SCOPE_SIGNALS)
    allowed = dict.fromkeys((*READABLE, sys.base_prefix, sys.base_exec_prefix), _FS_READ)
    allowed |= {f"/dev/{name}": _FS_READ | 1 << 1 for name in DEVICES}
    for path, rights in {**allowed, directory: _FS_ALL}.items():
        try:
            target = os.open(path, os.O_PATH)
        except OSError:
            continue
        if not os.path.isdir(path):
            rights &= _FS_FILE
        rule = struct.pack("=Qi", rights, target)
        add = libc.syscall(SYS_LANDLOCK_ADD, ruleset, _RULE_PATH_BENEATH, rule, 0)
        os.close(target)
        _check(add, f"landlock {path}")
    _check(libc.syscall(SYS_LANDLOCK_RESTRICT, ruleset, 0), "landlock")
    os.close(ruleset)
