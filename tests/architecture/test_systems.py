"""What only some systems have is used in `reading/system.py` alone, which knows what to do without.

What the tools do without it is tried in tests/systems.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache

import pytest

from tests.conftest import ROOT

KNOWING = "ai8xtools/reading/system.py"
MODULES = {
    "fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "readline", "syslog",
    "curses", "crypt", "msvcrt", "winreg", "nt", "_winapi",
}  # fmt: skip
OF_MODULES = {
    "os": {
        "O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY", "O_SYNC", "chown",
        "chroot", "fchmod", "fchown", "fork", "forkpty", "geteuid", "getegid", "getgid",
        "getgroups", "getloadavg", "getpgid", "getpgrp", "getpriority", "getresuid", "getsid",
        "getuid", "initgroups", "killpg", "lchown", "lockf", "major", "mkfifo", "mknod", "nice",
        "openpty", "pathconf", "posix_fallocate", "posix_spawn", "pread", "pwrite",
        "sched_getaffinity", "sched_setaffinity", "sendfile", "setpgid", "setpriority",
        "setsid", "setuid", "statvfs", "sync", "sysconf", "tcgetpgrp", "ttyname", "uname",
        "wait", "wait3", "wait4", "waitid", "fdatasync", "startfile", "register_at_fork",
        "confstr",
    },
    "signal": {
        "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCONT", "SIGHUP", "SIGIO", "SIGKILL", "SIGPIPE",
        "SIGPROF", "SIGQUIT", "SIGSTOP", "SIGTSTP", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGXCPU",
        "SIGXFSZ", "SIGBREAK", "alarm", "setitimer", "pause", "pthread_kill", "pthread_sigmask",
        "sigwait", "siginterrupt", "set_wakeup_fd",
    },
    "sys": {"platform", "getwindowsversion"},
    "time": {"tzset", "clock_gettime"},
    "tempfile": {"NamedTemporaryFile"},  # Windows opens it only once
}  # fmt: skip
WORD = re.compile(r"\w+")
WORDS = {"preexec_fn", "pass_fds", "process_group"}
"""Arguments of subprocess that Windows refuses."""
ALLOWED = {
    ("datasets/cache.py", "tempfile.NamedTemporaryFile"): "used by its handle",
    ("ai8xtools/emulator/cpu/workshop.py", "tempfile.NamedTemporaryFile"): "used by its handle",
    ("benchmarks/emulator.py", "resource"): "measures on Linux",
    ("benchmarks/emulator.py", "os.sched_setaffinity"): "measures on Linux",
    ("benchmarks/emulator.py", "os.sched_getaffinity"): "measures on Linux",
    ("benchmarks/loader_cost.py", "os.wait4"): "measures on Linux",
    ("tools/torch_source.py", "sys.platform"): "runs with nothing but pip, before the set-up",
}  # fmt: skip


@cache
def _product() -> tuple[str, ...]:
    tracked = subprocess.run(
        ["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return tuple(name for name in tracked.stdout.splitlines() if not name.startswith("tests/"))


RARE = MODULES | WORDS | set().union(*OF_MODULES.values())


def findings(source: str) -> Iterator[str]:
    """Yield what a module uses that some system does not have."""
    if RARE.isdisjoint(WORD.findall(source)):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names):
                yield from (one.name for one in names if one.name.split(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                if module in MODULES:
                    yield module
                rare = OF_MODULES.get(module, set())
                yield from (f"{module}.{one.name}" for one in names if one.name in rare)
            case ast.Attribute(value=ast.Name(module), attr=attribute):
                if attribute in OF_MODULES.get(module, set()):
                    yield f"{module}.{attribute}"
            case ast.keyword(arg=str(word)) if word in WORDS:
                yield word


@pytest.mark.parametrize(
    "source",
    ["import fcntl", "from resource import setrlimit", "import os\nos.fork()", "run(preexec_fn=f)",
     "def f():\n    import pwd", "from os import mkfifo", "import signal\nx = signal.SIGHUP"],
)  # fmt: skip
def test_what_some_systems_lack_is_found(source: str) -> None:
    assert list(findings(source))


def test_only_one_module_knows_the_differences_between_systems() -> None:
    names = [name for name in _product() if name != KNOWING]
    found = {
        (name, use) for name in names for use in findings((ROOT / name).read_text(encoding="utf-8"))
    }
    assert found == set(ALLOWED), "ask ai8xtools/reading/system.py instead"


OPENING = re.compile(r"open\b|read_text|write_text|NamedTemporaryFile")


def unencoded(source: str) -> Iterator[int]:
    """Yield the lines that open a text file in whatever encoding the system prefers."""
    if not OPENING.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        given = {word.arg for word in node.keywords}
        match node.func:
            case ast.Attribute(attr="read_text"):
                opens = not node.args and "limit" not in given
            case ast.Attribute(attr="write_text"):
                opens = len(node.args) < 2
            case ast.Name("open") | ast.Attribute(attr="open" | "fdopen" | "NamedTemporaryFile"):
                opens = _opens_text(node)
            case _:
                opens = False
        if opens and "encoding" not in given:
            yield node.lineno


def _opens_text(call: ast.Call) -> bool:
    """Whether a call opens a file as text: the mode says so, or a file is opened without one."""
    modes = [word.value for word in call.keywords if word.arg == "mode"]
    modes += [one for one in call.args if isinstance(one, ast.Constant)]
    known = [one.value for one in modes if isinstance(one, ast.Constant)]
    kinds = [one for one in known if isinstance(one, str) and set(one) <= set("rwabxt+")]
    if kinds:
        return "b" not in kinds[0]
    method = call.func
    if isinstance(method, ast.Attribute):  # tempfile's and Path's; not tarfile.open(file)
        return method.attr == "open" and not call.args and not call.keywords
    return True


@pytest.mark.parametrize(
    "source",
    ["open(p)", "open(p, 'w')", "p.open()", "p.open('w')", "p.read_text()", "p.write_text(t)",
     "os.fdopen(h, 'w')", "open(p, mode='r')"],
)  # fmt: skip
def test_text_files_without_encoding_are_found(source: str) -> None:
    assert list(unencoded(source)) == [1]
    blank = source.endswith("()")
    assert list(unencoded(source[:-1] + ", encoding='utf-8')"[2 * blank :])) == []


@pytest.mark.parametrize("source", ["open(p, 'rb')", "p.open('wb')", "p.read_bytes()", "f.open(x)"])
def test_binary_files_need_no_encoding(source: str) -> None:
    assert list(unencoded(source)) == []


def test_text_files_are_opened_with_an_encoding_given() -> None:
    found = [
        f"{name}:{line}"
        for name in _product()
        for line in unencoded((ROOT / name).read_text(encoding="utf-8"))
    ]
    assert found == []
