"""The seccomp filter of sandboxed code: one table of system calls, for Docker and for the kernel.

An allow-list: what CPython, its standard library, the supervisor and ordinary command-line
programs need. Everything else gets an errno:

    clone3                     ENOSYS: its flags lie in memory, where no filter can look; on ENOSYS,
                               and on nothing else, libc falls back to clone
    numbers above the table    ENOSYS: newer than the table, and libc falls back here too
    all others                 EPERM

Another architecture's calls (i386 on x86_64) kill the process. x32's numbers lie above the table;
in Docker, libseccomp kills there as well.
"""

from __future__ import annotations

import itertools
import platform
import re
import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from gatekeeper.errors import BadInputError

__all__ = ["docker_profile", "program"]

# Machine -> its name in libseccomp and the AUDIT_ARCH_* of <linux/audit.h>, in the table's order.
_MACHINES = {
    "x86_64": ("SCMP_ARCH_X86_64", 0xC000003E),
    "aarch64": ("SCMP_ARCH_AARCH64", 0xC00000B7),
}

# The calls known here: name, number on x86_64, number on aarch64 ("-": there is none).
#
# Left out for a reason that the name does not show: memfd_create, whose memory counts neither
# as address space nor as files in /tmp; sync and syncfs, which stall the host's disks (libc's
# sync() cannot fail, so this has no effect); futex_waitv, vmsplice, kernel AIO, memory policies and
# protection keys, which Python never calls. execveat adds nothing to execve; os.execve of a file
# descriptor needs it. seccomp and prctl can only narrow what a process may do.
_TABLE = """
    # Reading and writing.
    read 0 63, write 1 64, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66, preadv 295 69,
    pwritev 296 70, preadv2 327 286, pwritev2 328 287, lseek 8 62, sendfile 40 71,
    copy_file_range 326 285, splice 275 76, tee 276 77, readahead 187 213, fadvise64 221 223

    # Opening.
    open 2 -, openat 257 56, openat2 437 437, creat 85 -, close 3 57, close_range 436 436,
    dup 32 23, dup2 33 -, dup3 292 24, fcntl 72 25, flock 73 32, ioctl 16 29, pipe 22 -,
    pipe2 293 59

    # Names and metadata of files.
    stat 4 -, fstat 5 80, lstat 6 -, newfstatat 262 79, statx 332 291, access 21 -,
    faccessat 269 48, faccessat2 439 439, statfs 137 43, fstatfs 138 44, getdents 78 -,
    getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, umask 95 166, readlink 89 -,
    readlinkat 267 78, rename 82 -, renameat 264 38, renameat2 316 276, mkdir 83 -, mkdirat 258 34,
    rmdir 84 -, unlink 87 -, unlinkat 263 35, link 86 -, linkat 265 37, symlink 88 -,
    symlinkat 266 36, mknod 133 -, mknodat 259 33, chmod 90 -, fchmod 91 52, fchmodat 268 53,
    chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54, utime 132 -, utimes 235 -,
    futimesat 261 -, utimensat 280 88, truncate 76 45, ftruncate 77 46, fallocate 285 47,
    fsync 74 82, fdatasync 75 83, getxattr 191 8, lgetxattr 192 9, fgetxattr 193 10,
    setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, listxattr 194 11, llistxattr 195 12,
    flistxattr 196 13, removexattr 197 14, lremovexattr 198 15, fremovexattr 199 16,
    inotify_init 253 -, inotify_init1 294 26, inotify_add_watch 254 27, inotify_rm_watch 255 28

    # Waiting.
    poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, epoll_create 213 -, epoll_create1 291 20,
    epoll_ctl 233 21, epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441, eventfd 284 -,
    eventfd2 290 19, signalfd 282 -, signalfd4 289 74, timerfd_create 283 85,
    timerfd_settime 286 86, timerfd_gettime 287 87

    # Sockets.
    socket 41 198, socketpair 53 199, bind 49 200, listen 50 201, accept 43 202, accept4 288 242,
    connect 42 203, shutdown 48 210, getsockname 51 204, getpeername 52 205, getsockopt 55 209,
    setsockopt 54 208, sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212,
    sendmmsg 307 269, recvmmsg 299 243

    # Memory.
    brk 12 214, mmap 9 222, munmap 11 215, mremap 25 216, mprotect 10 226, madvise 28 233,
    mincore 27 232, msync 26 227, mlock 149 228, mlock2 325 284, munlock 150 229, mlockall 151 230,
    munlockall 152 231, membarrier 324 283

    # Processes and threads.
    clone 56 220, clone3 435 435, fork 57 -, vfork 58 -, execve 59 221, execveat 322 281,
    exit 60 93, exit_group 231 94, wait4 61 260, waitid 247 95, pidfd_open 434 434,
    pidfd_send_signal 424 424, getpid 39 172, getppid 110 173, gettid 186 178, getpgid 121 155,
    getpgrp 111 -, setpgid 109 154, getsid 124 156, setsid 112 157, set_tid_address 218 96,
    futex 202 98, set_robust_list 273 99, rseq 334 293, arch_prctl 158 -, prctl 157 167,
    personality 135 92, seccomp 317 277

    # Users and capabilities.
    getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177, getresuid 118 148,
    getresgid 120 150, getgroups 115 158, setuid 105 146, setgid 106 144, setreuid 113 145,
    setregid 114 143, setresuid 117 147, setresgid 119 149, setfsuid 122 151, setfsgid 123 152,
    setgroups 116 159, capget 125 90, capset 126 91

    # Scheduling and limits.
    sched_yield 24 124, sched_getaffinity 204 123, sched_setaffinity 203 122,
    sched_getparam 143 121, sched_setparam 142 118, sched_getscheduler 145 120,
    sched_setscheduler 144 119, sched_getattr 315 275, sched_setattr 314 274,
    sched_get_priority_max 146 125, sched_get_priority_min 147 126, sched_rr_get_interval 148 127,
    getcpu 309 168, getpriority 140 141, setpriority 141 140, getrlimit 97 163, setrlimit 160 164,
    prlimit64 302 261, getrusage 98 165, times 100 153, sysinfo 99 179, uname 63 160,
    getrandom 318 278

    # Signals.
    kill 62 129, tkill 200 130, tgkill 234 131, rt_sigaction 13 134, rt_sigprocmask 14 135,
    rt_sigpending 127 136, rt_sigsuspend 130 133, rt_sigtimedwait 128 137, rt_sigqueueinfo 129 138,
    rt_tgsigqueueinfo 297 240, rt_sigreturn 15 139, sigaltstack 131 132, restart_syscall 219 128,
    pause 34 -

    # Time.
    time 201 -, gettimeofday 96 169, clock_gettime 228 113, clock_getres 229 114,
    clock_nanosleep 230 115, nanosleep 35 101, alarm 37 -, getitimer 36 102, setitimer 38 103,
    timer_create 222 107, timer_settime 223 110, timer_gettime 224 108, timer_getoverrun 225 109,
    timer_delete 226 111
"""


@dataclass(frozen=True, slots=True)
class _Only:
    """A call is allowed where `argument & mask` is one of `values`; otherwise it gets EPERM.

    Masks have at most 32 bits. For an int argument the mask is all of them, because the kernel
    ignores the upper half of the register: a bit set there would evade a filter of all 64.
    """

    argument: int
    mask: int
    values: tuple[int, ...]


_INT = 0xFFFFFFFF
_EPERM, _ENOSYS = 1, 38  # Linux's: the caller of Docker may be another system
_FAMILIES = (1, 2, 10)  # AF_UNIX, AF_INET, AF_INET6

# Requests that programs make to files, terminals and sockets. Left out: TIOCSTI and TIOCLINUX,
# which type on the user's terminal, and TIOCSETD, which loads drivers.
_IOCTLS = {
    "TCGETS": 0x5401,
    "TCSETS": 0x5402,
    "TCSETSW": 0x5403,
    "TCSETSF": 0x5404,
    "TCSBRK": 0x5409,
    "TCXONC": 0x540A,
    "TCFLSH": 0x540B,
    "TIOCSCTTY": 0x540E,
    "TIOCGPGRP": 0x540F,
    "TIOCSPGRP": 0x5410,
    "TIOCOUTQ": 0x5411,
    "TIOCGWINSZ": 0x5413,
    "TIOCSWINSZ": 0x5414,
    "FIONREAD": 0x541B,
    "FIONBIO": 0x5421,
    "TIOCNOTTY": 0x5422,
    "TCSBRKP": 0x5425,
    "TIOCGSID": 0x5429,
    "TCGETS2": 0x802C542A,
    "TCSETS2": 0x402C542B,
    "TCSETSW2": 0x402C542C,
    "TCSETSF2": 0x402C542D,
    "TIOCGPTN": 0x80045430,
    "TIOCSPTLCK": 0x40045431,
    "TIOCGPTPEER": 0x5441,
    "FIONCLEX": 0x5450,
    "FIOCLEX": 0x5451,
    "FIOASYNC": 0x5452,
    "SIOCATMARK": 0x8905,
    "SIOCGIFNAME": 0x8910,
    "SIOCGIFCONF": 0x8912,
    "SIOCGIFFLAGS": 0x8913,
    "SIOCGIFADDR": 0x8915,
    "SIOCGIFNETMASK": 0x891B,
    "SIOCGIFMTU": 0x8921,
    "SIOCGIFHWADDR": 0x8927,
    "SIOCGIFINDEX": 0x8933,
    "FICLONE": 0x40049409,  # pathlib.Path.copy tries it, and fails if it gets EPERM
}

_SELF = _Only(0, _INT, (0,))  # a process number: 0 is the caller itself

# All of a call's conditions have to hold.
#
# A process may change the limits, priority and processors of other processes of the same user.
# With one user and no namespace these include the host and its other candidates. So only 0, the
# caller itself, is allowed; its own number is not, because a filter does not know it. PRIO_USER
# means every process of the user. `setpgid` needs no condition: it can reach children only.
_CONDITIONS: dict[str, tuple[_Only, ...]] = {
    "socket": (_Only(0, _INT, _FAMILIES),),
    "socketpair": (_Only(0, _INT, _FAMILIES),),
    "ioctl": (_Only(1, _INT, tuple(_IOCTLS.values())),),
    # CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}; clone has no flag for CLONE_NEWTIME
    "clone": (_Only(0, 0x7E020000, (0,)),),
    "personality": (_Only(0, _INT, (0, 0xFFFFFFFF)),),  # plain Linux, or the query
    "prlimit64": (_SELF,),
    "sched_setaffinity": (_SELF,),
    "sched_setparam": (_SELF,),
    "sched_setscheduler": (_SELF,),
    "sched_setattr": (_SELF,),
    "setpriority": (_Only(0, _INT, (0, 1)), _Only(1, _INT, (0,))),  # own process, own group
}

# Without a network namespace, a socket reaches everything that the user's programs reach: an
# engine, an agent that holds keys. A datagram socket of a pair could be connected to them, too.
_PAIRS = _Only(1, 0xF, (1, 5))  # SOCK_STREAM, SOCK_SEQPACKET

# Name -> its numbers, as the table writes them, in the order of the machines.
_SYSCALLS = {name: numbers for name, *numbers in re.findall(r"(\w+) (\d+|-) (\d+|-)", _TABLE)}


def docker_profile() -> dict[str, Any]:
    """The profile for Docker's `--security-opt seccomp=<json>`, for both machines.

    ENOSYS for the numbers above the table is not in it: runc (from 1.0) adds that itself.
    """
    free = [name for name in _SYSCALLS if name != "clone3" and name not in _CONDITIONS]
    rules: list[dict[str, Any]] = [
        {"names": free, "action": "SCMP_ACT_ALLOW"},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _ENOSYS},
    ]
    for name, conditions in _CONDITIONS.items():
        # All conditions of one rule must hold; of several rules one is enough.
        for values in itertools.product(*(only.values for only in conditions)):
            arguments = [
                {
                    "index": only.argument,
                    "value": only.mask,
                    "valueTwo": value,
                    "op": "SCMP_CMP_MASKED_EQ",
                }
                for only, value in zip(conditions, values, strict=True)
            ]
            rules.append({"names": [name], "action": "SCMP_ACT_ALLOW", "args": arguments})
    return {
        "defaultAction": "SCMP_ACT_ERRNO",  # EPERM
        "archMap": [
            {"architecture": architecture, "subArchitectures": []}
            for architecture, _ in _MACHINES.values()
        ],
        "syscalls": rules,
    }


# Classic BPF, <linux/bpf_common.h>: an instruction is an opcode, how many instructions to skip if
# its test holds and if not, and an operand.
_Code = list[tuple[int, int, int, int]]
_LOAD, _AND, _SKIP, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000


@cache
def program(machine: str | None = None, *, network: bool = True) -> bytes:
    """The same rules for `prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER)`: an array of sock_filter.

    `machine` is "x86_64" or "aarch64"; None: this one. Without `network`, for processes without a
    network namespace, only connected pairs of sockets are allowed. The process must have
    no_new_privs.
    Raises BadInputError for another machine.
    """
    machine = platform.machine() if machine is None else machine
    if machine not in _MACHINES:
        raise BadInputError(f"machine={machine!r}: there is a filter for {', '.join(_MACHINES)}")
    _, architecture = _MACHINES[machine]
    column = list(_MACHINES).index(machine)
    rules = {
        int(numbers[column]): _rule(name, network)
        for name, numbers in _SYSCALLS.items()
        if numbers[column] != "-"
    }
    refuse: _Code = [(_RETURN, 0, 0, _ERRNO | _EPERM)]
    unknown: _Code = [(_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    codes = [rules.get(number, refuse) for number in range(max(rules) + 1)] + [unknown]
    ranges = [
        (number, code)
        for number, code in enumerate(codes)
        if number == 0 or code != codes[number - 1]
    ]
    start: _Code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    return b"".join(struct.pack("<HBBI", *step) for step in start + _search(ranges))


def _rule(name: str, network: bool) -> _Code:
    """The instructions that decide on one call of the table."""
    if name == "clone3":
        return [(_RETURN, 0, 0, _ERRNO | _ENOSYS)]
    if name == "socket" and not network:
        return [(_RETURN, 0, 0, _ERRNO | _EPERM)]
    conditions = [*_CONDITIONS.get(name, ())]
    if name == "socketpair" and not network:
        conditions.append(_PAIRS)
    code: _Code = [(_RETURN, 0, 0, _ALLOW)]
    for only in reversed(conditions):
        count = len(only.values)
        code = [
            (_LOAD, 0, 0, _ARGUMENTS + 8 * only.argument),  # lower half of the argument
            (_AND, 0, 0, only.mask),
            *[(_EQUAL, count - i, 0, value) for i, value in enumerate(only.values)],
            (_RETURN, 0, 0, _ERRNO | _EPERM),
            *code,
        ]
    return code


def _search(ranges: list[tuple[int, _Code]]) -> _Code:
    """Binary search in `ranges`: first numbers, ascending, and the code that decides from there."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    below, above = _search(ranges[:middle]), _search(ranges[middle:])
    # A test skips 255 instructions at most; an unconditional skip has no such limit.
    return [
        (_AT_LEAST, 0, 1, ranges[middle][0]),
        (_SKIP, 0, 0, len(below)),
        *below,
        *above,
    ]
