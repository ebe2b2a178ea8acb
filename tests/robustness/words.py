"""What mutations of descriptions put in place of keys, values and characters."""

from __future__ import annotations

HUGE = (
    "2147483648", "-2147483649", "4294967296", "9223372036854775807", "9223372036854775808",
    "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1" + "0" * 40,
    "1" * 5000, "0x" + "f" * 5000, "-" + "9" * 70000, "1e308", "1e9999", "1000000", "65536",
)  # fmt: skip
ODD = (
    "true", "no", "on", "~", "null", "", "''", '""', "None", ".nan", ".inf", "-.inf", "1.5", "-0.0",
    "1e3", ".5", "2024-02-30", "2024-02-29", "2024-02-29 12:00:00 +99:99", "12:30:45", "190:20:30",
    "0b101", "0b", "0o17", "017", "089", "0x", "0xg", "1_000", "_", "+1", "- 1", "--1", "1-", "=",
    "<<", "[]", "{}", "[1]", "[1, 2]", "[1, 2, 3]", "[[1, 2], [3, 4]]", "{a: 1}", "[~, ~]",
    "[1, x]", "{1, 2}", "'1'", '"0xff"', '"\\0"', '"\\ud800"', '"\\n"', "'a b'", "*", "&a 1",
    "*nowhere", "!", "!!str", "!!null", "|", ">", "%", "@x", "`x`", "?", ": :", "#", "\t", "a: b",
    "-", "- - -", "inf", "nan", "0.0", "1.0", "3.0", "3x3", "0x0", "1x", "x1", "99999x99999",
    "\u0663", "\u00b2", "\uff13", "\u0661\u0662", "stop", "input", "ring", "../../etc/passwd",
    "/dev/zero", "/dev/stdin", ".", "..", "/", "a/b", "%s%n", "{0}", "{{ x }}", "*/ x /*", "\\",
)  # fmt: skip
TAGS = (
    "!!python/object/apply:os.system ['touch executed']", "!!python/name:os.system", "!!int x",
    "!!python/object/new:subprocess.Popen [[touch, executed]]", "!!binary aGVsbG8=", "!!set {a}",
    "!!omap [a: 1]", "!!pairs [a: 1]", "!local 1", "!<tag:example.org,2000:x> 1", "!!float x",
    "!!int 0x", "!!bool maybe", "!!timestamp never", "!!int ''", "!!int 1:2:3", "!!float .",
    "!!float 0x1", "!!map [1]", "!!seq {a: 1}", "!!str [1]", "!!int [1]", "!!null x", "!!merge x",
    "!!value x", "!!int -", "!!int +", "!!int 0b2", "!!int 9", "!!bool on", "!!str 3",
    "!!float 1:2", "!!int 1.5", "!!float -", "!!int _",
)  # fmt: skip
CHARACTERS = (
    "\0", "\x07", "\x1b[31m", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffe", "\U0001f9e0", "\u202e",
    "e\u0301", "\t", "\r", "\v", "{", "}", "[", "]", ":", "-", "&", "*", "!", "|", ">", "'", '"',
    "%", "@", "`", "#", "?", ",", "\\", "\u00a0", "\u3000",
)  # fmt: skip
BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\xfe\xff", b"\xf5\x80\x80\x80", b"\xc0\x80")


CONTENTS: tuple[str | bytes, ...] = (
    "", " ", "\n\n", "# nothing\n", "---\n", "---\n---\n", "...\n", "~", "3", "text", "[]", "{}",
    "- 1\n- 2\n", "? [a]\n: b\n", "%YAML 9.9\n---\na: 1\n", "%TAG ! x\n---\n", "\0", "\ufeff",
    "arch: test\n", "layers: []\n", "arch: test\ndataset: x\nlayers: []\n",
    "arch: test\ndataset: x\nlayers: {}\n", "arch: test\ndataset: x\nlayers: ~\n",
    "arch: test\ndataset: x\nlayers: [~]\n", "arch: test\ndataset: x\nlayers: [{}]\n",
    "arch: x\ndataset: x\nlayers: [{processors: 1}]\n", "&a [*a]\n", "&a {a: *a}\n",
    b"\x89PNG\r\n\x1a\n\0\0", b"PK\x03\x04", b"\x1f\x8b\x08", bytes(range(256)), b"\0" * 4096,
    "'", '"', "[", "{", "&", "*", "!", "|", ">", "@", "`", "a: b: c", "- a\nb: c\n", "\t",
)  # fmt: skip
ESCAPES = (
    '"\\0"', '"\\x1b[31m"', '"\\ud83e\\udde0"', '"\\udc80"', '"\\U0010ffff"', '"\\u202e"', "\u0130",
    "\ufb03", "\u00df", "x\ufeff", "x\U0001f9e0", "x\u202e", "xe\u0301",
)  # fmt: skip
KEYS = (
    "Arch", "LAYERS", "max_poool", "x", "1", "~", "true", "3.5", "[a]", "{a: b}", "? a", "<<", "*a",
    "'", "\u00e9", "2024-01-01", "!!python/name:os.system a", "a" * 100_000,
)  # fmt: skip
UNHASHABLE = (
    "? [a, b]\n: 1\n", "? {a: b}\n: 1\n", "[a, b]: 1\n", "{a: b}: 1\n", "<<: *x\n",
    "<<: {arch: test}\n", "<<: [{a: 1}]\n", "? |\n  a\n: 1\n", "? !!set {a}\n: 1\n", "~: 1\n",
    "? \n: 1\n", "&a a: *a\n", "=: 1\n", "1: 1\n1: 2\n",
)  # fmt: skip
DOCUMENTS = (
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "%YAML 9.9\n---\n",
    "%TAG !! tag:x,1:\n---\n",
    "--- a\n",
)
