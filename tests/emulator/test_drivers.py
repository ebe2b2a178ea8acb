"""What drivers of the SDK answer, as programs rely on it."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from ai8xtools.emulator import Board

_PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "aes.h"
#include "crc.h"
#include "mxc.h"
#include "camera.h"
#include "dma.h"
#include "lp.h"
#include "wut.h"
void WUT_IRQHandler(void) { MXC_WUT_ClearFlags(); }
static void frame(pixformat_t format, fifomode_t fifo, dmamode_t dma)
{
    uint8_t *pixels;
    uint32_t length = 0, width, height;
    int status = camera_setup(8, 4, format, fifo, dma, 0);
    if (!status)
        camera_get_image(&pixels, &length, &width, &height);
    printf(" %d/%d/%d", status, (int) length, status ? 0 : camera_get_stream_buffer_size());
}
static void check_sums(void)
{
    static uint32_t text[] = {0x34333231, 0x38373635};
    mxc_crc_req_t request = {text, 2, 0};
    MXC_CRC_Init();
    MXC_CRC_SetPoly(0xEDB88320);
    MXC_CRC_Compute(&request);
    *(volatile uint8_t *) &MXC_CRC->datain32 = '9';
    printf(" %08x %08x", (unsigned) request.resultCRC, (unsigned) ~MXC_CRC_GetResult());
    MXC_CRC_Init();
    MXC_CRC_SetPoly(0x04C11DB7);
    MXC_CRC_SetDirection(CRC_MSB_FIRST);
    MXC_CRC_SwapDataIn(CRC_MSB_FIRST);
    MXC_CRC_Compute(&request);
    *(volatile uint8_t *) &MXC_CRC->datain32 = '9';
    printf(" %08x\\n", (unsigned) MXC_CRC_GetResult());
}
static volatile int told;
void DMA0_IRQHandler(void) { MXC_DMA_Handler(); }
static void done(void *request, int error) { told += !error && request; }
static void ciphers(void)
{
    static const mxc_aes_keys_t sizes[] = {MXC_AES_128BITS, MXC_AES_192BITS, MXC_AES_256BITS};
    uint8_t key[32], plain[16], result[16];
    for (int i = 0; i < 32; i++)
        key[i] = (uint8_t) i;
    for (int i = 0; i < 16; i++)
        plain[i] = (uint8_t) (0x11 * i);
    MXC_DMA_ReleaseChannel(0);
    NVIC_EnableIRQ(DMA0_IRQn);
    MXC_AES_Init();
    for (int i = 0; i < 3; i++) {
        mxc_aes_req_t request = {4, (uint32_t *) plain, (uint32_t *) result, sizes[i], 0, done};
        MXC_AES_SetExtKey(key, sizes[i]);
        MXC_AES_EncryptAsync(&request);
        for (int k = 0; k < 16; k++)
            printf("%02x", result[k]);
        request.inputData = request.resultData;
        request.encryption = MXC_AES_DECRYPT_EXT_KEY;
        MXC_AES_Decrypt(&request);
        printf(" %d ", memcmp(plain, result, 16));
    }
    printf("%d\\n", told);
}
int main(void)
{
    static const pixformat_t formats[] = {PIXFORMAT_GRAYSCALE, PIXFORMAT_RGB444, PIXFORMAT_RGB565,
                                          PIXFORMAT_YUV422, PIXFORMAT_BAYER, PIXFORMAT_RGB888};
    for (int i = 0; i < 6; i++)
        for (int dma = NO_DMA; dma <= STREAMING_DMA; dma++)
            frame(formats[i], FIFO_THREE_BYTE, (dmamode_t) dma);
    frame(PIXFORMAT_RGB888, FIFO_FOUR_BYTE, USE_DMA);
    printf("\\n");
    for (int i = 0; i < 5; i++)
        printf(" %d", MXC_DMA_AcquireChannel());
    MXC_DMA_ReleaseChannel(2);
    printf(" %d\\n", MXC_DMA_AcquireChannel());

    mxc_wut_cfg_t alarm = {MXC_WUT_MODE_CONTINUOUS, 3277};
    uint32_t asleep = 0;
    MXC_WUT_Init(MXC_WUT_PRES_1);
    MXC_WUT_Config(&alarm);
    NVIC_EnableIRQ(WUT_IRQn);
    MXC_WUT_Enable();
    for (int i = 0; i < 5; i++) {
        MXC_TMR_SW_Start(MXC_TMR0);
        MXC_LP_EnterSleepMode();
        asleep += MXC_TMR_SW_Stop(MXC_TMR0);
        MXC_Delay(20000);
    }
    printf(" %u\\n", (unsigned) asleep);
    check_sums();
    ciphers();
    printf("%d\\n", camera_setup(20000, 20000, PIXFORMAT_RGB565, FIFO_FOUR_BYTE, USE_DMA, 0));
    return 0;
}
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    project = tmp_path_factory.mktemp("drivers")
    (project / "main.c").write_text(_PROGRAM)
    board = Board.with_project(Path(project))
    board.run(10)
    return board


def test_a_pixel_has_the_bytes_of_its_format_and_transfer(board: Board) -> None:
    """Status, bytes of 8x4 pixels and bytes of a row: without DMA, with it, by rows."""
    frames = board.console.splitlines()[0].split()
    two = ["0/64/16"] * 3
    assert frames[:15] == [*two, *two, *two, *two, *["0/32/8"] * 3]
    assert frames[15:] == ["0/96/24", "0/128/32", "0/128/32", "-1/0/0"]


def test_channels_of_dma_have_numbers_and_an_end(board: Board) -> None:
    assert board.console.splitlines()[1].split() == ["0", "1", "2", "3", "-14", "2"]


def test_the_time_asleep_is_what_the_program_measures(board: Board) -> None:
    """An alarm every 100 ms, and 20 ms of work: 100 ms asleep at first, then 80."""
    measured = int(board.console.splitlines()[2])
    assert measured == pytest.approx(420_000, abs=500)
    assert board.core.slept == pytest.approx(measured, abs=500)
    assert board.core.now() == pytest.approx(520_000, abs=1000)


def test_check_sums_are_those_of_the_standards(board: Board) -> None:
    """Of "12345678" before the last inversion, then CRC-32 and CRC-32/MPEG-2 of "123456789"."""
    state = zlib.crc32(b"12345678") ^ 0xFFFFFFFF
    assert board.console.splitlines()[3].split() == [f"{state:08x}", "cbf43926", "0376e6e7"]


def test_aes_gives_the_examples_of_the_standard(board: Board) -> None:
    """FIPS 197, appendix C, with keys of 128, 192 and 256 bits; deciphered it is the text again."""
    assert board.console.splitlines()[4].split() == [
        *("69c4e0d86a7b0430d8cdb78070b4c55a", "0"),
        *("dda97ca4864cdfe06eaf70a0ec0d7191", "0"),
        *("8ea2b7ca516745bfeafc49904b496089", "0"),
        "3",
    ]


def test_a_picture_without_memory_is_told(board: Board) -> None:
    assert board.console.splitlines()[5] == "-10"
    assert board.progress.stand_ins["no memory for camera_setup()"] == 1
