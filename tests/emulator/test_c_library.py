"""The C library and the intrinsic functions that programs of others call."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ai8xtools.emulator import Board, EmulatorError
from ai8xtools.emulator.cpu.mathematics import OPERATIONS, format_number, parse_number
from ai8xtools.emulator.cpu.port import PORT
from ai8xtools.emulator.firmware.compiling import SDK

Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run statements as the body of main(); return what they print."""

    def build(body: str, head: str = "") -> str:
        (tmp_path / "main.c").write_text(
            "#include <assert.h>\n#include <ctype.h>\n#include <errno.h>\n#include <inttypes.h>\n"
            "#include <limits.h>\n#include <math.h>\n#include <stdarg.h>\n#include <stdio.h>\n"
            '#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n#include "mxc.h"\n'
            f"{head}\nint main(void)\n{{\n{body}\n    return 0;\n}}\n"
        )
        return Board.with_project(tmp_path).run(10).console

    return build


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ('"%5.2f|%-8.3e|%g|%.0f", 3.14159, 12345.678, 0.0001, 2.5', " 3.14|1.235e+04|0.0001|2"),
        ('"%+d % d %05d %-5d| %5d", 3, 4, -42, 7, -8', "+3  4 -0042 7    |    -8"),
        ('"%#x %#o %X %08lx", 255, 8, 0xabcu, 0x12UL', "0xff 010 ABC 00000012"),
        ('"%hhd %hu %lld %llu", 300, 65537, -5LL, 1ULL << 40', "44 1 -5 1099511627776"),
        ('"%*d|%-*d|%.*s|%.3d", 5, 1, 4, 2, 2, "abc", 7', "    1|2   |ab|007"),
        ('"%s|%8s|%-6s|%c|%%|%p", "x", "right", "left", 65, (void *) 16',
         "x|   right|left  |A|%|0x10"),
        ('"%" PRIu32 " %" PRId64, 7u, -9LL', "7 -9"),
        ('"%f %f", INFINITY, -NAN', "inf nan"),
    ],
)  # fmt: skip
def test_formats_are_those_of_the_standard(arguments: str, printed: str, run: Run) -> None:
    assert run(f"    printf({arguments});") == printed


def test_text_in_memory_is_limited_and_terminated(run: Run) -> None:
    body = """
    char text[8];
    int length = snprintf(text, sizeof(text), "%d-%s", 123, "abcdefgh");
    printf("%d %s|", length, text);
    sprintf(text, "%.1f", 2.25);
    fprintf(stderr, "%s|", text);
    puts(strcat(strcpy(text, "ab"), "cd"));"""
    assert run(body) == "12 123-abc|2.2|abcd\n"


def test_arithmetic_with_fractions_is_linked(run: Run) -> None:
    """Nobody but the compiler's own run time has it."""
    body = """
    volatile int i = 7;
    volatile float f = 0.5f;
    double d = i / 2.0 + f;
    printf("%d %d %.3f %d", (int) (d * 100), (int) (f * i), (double) f / 3, d > 3.9 && f < 1);
    volatile int64_t big = 1000000000000;
    printf(" %d %.0f", (int) (big / i % 1000), (double) big);"""
    assert run(body) == "400 3 0.167 1 857 1000000000000"


def test_mathematics_is_that_of_the_host(run: Run) -> None:
    body = """
    printf("%.12f %.12f %.12f ", sin(1.0), pow(2.0, 0.5), log10(1000.0));
    printf("%.6f %.6f %.1f %.1f ", (double) expf(1.0f), (double) atan2f(1.0f, -1.0f), floor(-0.5),
           round(2.5));
    int exponent;
    double whole, fraction = modf(-3.75, &whole), mantissa = frexp(48.0, &exponent);
    printf("%.2f %.1f %.2f %d %ld %d", fraction, whole, mantissa, exponent, lroundf(2.6f),
           isnan(sqrt(-1.0)));"""
    root = f"{math.sin(1):.12f} {math.sqrt(2):.12f} 3.000000000000 "
    assert run(body) == root + "2.718282 2.356194 -1.0 3.0 -0.75 -3.0 0.75 6 3 1"


def test_order_of_the_functions_agrees_with_the_header() -> None:
    header = (SDK / "include" / "math.h").read_text()
    names = re.findall(r"\bF\((\w+)\)", header)
    assert [*names, "ldexp"] == list(OPERATIONS)


def test_numbers_are_parsed(run: Run) -> None:
    body = """
    char *end;
    long hexadecimal = strtol("0x1fz", &end, 0);
    printf("%d %ld %s %lu ", atoi(" -12x"), hexadecimal, end, strtoul("777", NULL, 8));
    printf("%.3f %ld %d ", atof("-2.5e1kg"), strtol("99999999999", NULL, 10), errno == ERANGE);
    printf("%s %lld", itoa(-45, (char[8]) {0}, 10), atoll("123456789012"));"""
    assert run(body) == "-12 31 z 511 -25.000 2147483647 1 -45 123456789012"


def test_memory_is_given_and_taken_back(run: Run) -> None:
    body = """
    char *first = malloc(1000), *second = calloc(10, 4);
    strcpy(first, "kept");
    int clear = !second[39];
    first = realloc(first, 3000);
    free(second);
    void *again = malloc(40);
    printf("%s %d %d %d", first, clear, (char *) again < first, malloc(100000000) == NULL);
    for (int i = 0; i < 1000; i++) free(malloc(60000));"""
    assert run(body) == "kept 1 1 1"


def test_sorting_and_searching(run: Run) -> None:
    head = "static int order(const void *a, const void *b) { return *(int *) a - *(int *) b; }"
    body = """
    int values[] = {5, -3, 9, 0, 7, -3, 2}, key = 7;
    qsort(values, 7, sizeof(int), order);
    for (int i = 0; i < 7; i++) printf("%d ", values[i]);
    int *found = bsearch(&key, values, 7, sizeof(int), order);
    srand(3);
    int a = rand();
    srand(3);
    printf("%d %d %d", (int) (found - values), abs(-4), a == rand());"""
    assert run(body, head) == "-3 -3 0 2 5 7 9 5 4 1"


def test_strings(run: Run) -> None:
    body = """
    char text[] = "one,two,,three";
    for (char *part = strtok(text, ","); part; part = strtok(NULL, ",")) printf("%s;", part);
    printf("%s %s %d %d ", strstr("needle in hay", "in"), strrchr("a/b/c", '/'),
           strcasecmp("ABC", "abd") < 0, strncmp("abc", "abx", 2));
    printf("%d %d %s %c%c", (int) strspn("aab", "a"), memcmp("ab", "ac", 2) < 0, strdup("copy"),
           toupper('q'), isdigit('4') ? 'y' : 'n');"""
    assert run(body) == "one;two;three;in hay /c 1 0 2 1 copy Qy"


def test_intrinsic_functions(run: Run) -> None:
    body = """
    printf("%x %x %d %u %d ", __REV(0x12345678), __REV16(0x12345678), __SSAT(300, 8), __USAT(-5, 8),
           __CLZ(1));
    printf("%x %x %d", __RBIT(1), __ROR(0x80000001, 4), __SMLAD(0x00020003, 0x00040005, 1));"""
    assert run(body) == "78563412 34127856 127 0 31 80000000 18000000 24"


def test_program_ends_itself(run: Run, tmp_path: Path) -> None:
    run('    printf("x"); exit(3); printf("y");')
    outcome = Board.with_project(tmp_path).run(10)
    assert (outcome.console, outcome.exit_code) == ("x", 3)


@pytest.mark.parametrize("value", ["0xffffffffu", "0x110000u", "0xd800u"])
def test_a_word_at_the_console_port_is_a_character(run: Run, value: str) -> None:
    """Of whatever a program writes there, only the lowest byte is taken."""
    printed = run(f'    *(volatile uint32_t *) {PORT:#x}u = {value}; printf("|after");')
    assert printed == f"{chr(int(value.rstrip('u'), 16) & 0xFF)}|after"


def test_failed_assertion_shows_file_and_line(run: Run, tmp_path: Path) -> None:
    with pytest.raises(EmulatorError, match="abort"):
        run("    assert(1 + 1 == 3);")
    board = Board.with_project(tmp_path)
    with pytest.raises(EmulatorError):
        board.run(10)
    assert re.search(r"main\.c:\d+: assertion failed: 1 \+ 1 == 3\n", board.console)


def test_time_passes_while_the_program_waits(run: Run) -> None:
    body = """
    uint32_t seconds;
    MXC_Delay(MSEC(2500));
    MXC_RTC_GetSeconds(&seconds);
    int begin = MXC_RTC_GetSecond();
    while (MXC_RTC_GetSecond() < begin + 1) {}
    printf("%u %d %d", (unsigned) seconds, (int) time(NULL), clock() >= 3000000);"""
    assert run(body) == "2 3 1"


def test_registers_of_the_host() -> None:
    assert format_number("%7.2f", 0x4009_21FB_5444_2D18) == "   3.14"
    assert parse_number(" 1.5e2x") == (0x4062_C000_0000_0000, 6)
    assert parse_number("x") == (0, 0)


def test_texts_are_read_by_their_format(run: Run) -> None:
    body = r"""
    int a, b, n; unsigned h; float f; double d; char w[8], set[8]; long long l; short s = 7;
    n = sscanf("10 -3 0x1f 2.5 1e3 word,ab9 -9000000000 300",
               "%d %i %x %f %lf %[^,],%[a-z]%d %lld %hd", &a, &b, &h, &f, &d, w, set, &a, &l, &s);
    printf("%d %d %d %u %.1f %.0f %s %s %lld %d|", n, a, b, h, f, d, w, set, l, s);
    printf("%d %d %d", sscanf("12345", "%2d%*1d%d", &a, &b), a, b);
    printf(" %d %d", sscanf("x", "%d", &a), sscanf("", "%d", &a));"""
    assert run(body) == "10 9 -3 31 2.5 1000 word ab -9000000000 300|2 12 45 0 -1"


def test_calendar_jumps_and_constructors(run: Run) -> None:
    head = """
    #include <setjmp.h>
    #include <sys/time.h>
    static jmp_buf place;
    static int kept;
    __attribute__((constructor)) static void before(void) { kept = 40; }
    static void leave(void) { longjmp(place, 2); }"""
    body = r"""
    char text[40];
    time_t leap = 951827696; /* 29 February 2000 */
    strftime(text, sizeof text, "%a %d %b %Y %H:%M:%S %j", gmtime(&leap));
    struct tm day = *localtime(&leap);
    printf("%s %d|", text, mktime(&day) == leap);
    volatile int value = setjmp(place);
    if (!value)
        leave();
    printf("%d", kept + value);"""
    assert run(body, head) == "Tue 29 Feb 2000 12:34:56 060 1|42"


def test_flash_memory_and_clocks_of_the_chip(run: Run) -> None:
    """Programming clears bits, erasing sets those of a page; oscillators are ready at once."""
    body = r"""
    uint32_t place = 0x1007E000, words[4] = {1, 2, 3, 0xDEADBEEF}, back[4];
    MXC_FLC_PageErase(place);
    MXC_FLC_Write(place, 16, words);
    MXC_FLC_Read(place, back, 16);
    MXC_FLC_Write32(place, 0xFFFFFFF0);
    printf("%x %x %x", (unsigned) back[3], *(unsigned *) place, *(unsigned *) (place + 16));
    MXC_GCR->clkctrl = MXC_F_GCR_CLKCTRL_ISO_EN;
    while (!(MXC_GCR->clkctrl & MXC_F_GCR_CLKCTRL_ISO_RDY)) {}"""
    assert run(body) == "deadbeef 0 ffffffff"
